/*
 * The records of sandboxes: what should be, until it is proven gone.
 *
 * `owner` NULL means all owners (an admin asks). A sandbox of another owner is
 * ERR_NOT_FOUND, like one that never was.
 */
#pragma once

#include "core/label.h"
#include "core/placement.h"
#include "core/sandbox.h"
#include "store/idempotency.h"
#include "store/store.h"

#define STORE_RECEIPT_MAX 2000 /* bytes of a receipt, JSON text */
#define STORE_LIST_MAX    1000 /* rows of one list call */
#define STORE_SWEEP_PAGE  50   /* rows that a sweep reads, or takes as due, at once */

struct agent_session;

/*
 * The intent: state creating, generation 1, version 1. The image's digest is
 * resolved in the same transaction; ERR_NOT_FOUND names an image that is not
 * there, ERR_CONFLICT an id that is. `spec` must be checked, its runtime set.
 *
 * With `room` the host's promises are summed up in the same transaction, and
 * ERR_BUSY says what is short; `room` itself need not know them. With a
 * cap_subject its sandboxes are counted there: ERR_LIMIT names the limit. The
 * record is the reservation: it is given back with the row, and not before.
 *
 * With a use its key is taken in the same transaction. Returns 1 if it was taken
 * before, by whatever request, and writes nothing: see store_idempotency_get().
 */
struct sandbox_intent {
	const char *id, *owner, *host;
	const struct sandbox_spec *spec;
	const struct placement_host *room; /* what the host has; NULL: it is not asked */
	bool *full;                        /* set if the host has no room; may be NULL */
	uint64_t deadline_ms;
	const struct idempotency_use *use; /* NULL: the request came without a key */
	const char *network;               /* written with it or not at all; NULL: none */
	/* So is what was decided for its session; ERR_CONFLICT: something else was, meanwhile. */
	const char *session;
	const struct agent_session *decided; /* NULL: nothing new */
};
must_check int store_sandbox_insert(struct store *s, const struct sandbox_intent *intent,
				    struct sandbox *ret, struct err *e);

/* Of an error that tells of no room: when to ask again, from what ends there; NULL: anywhere. */
int store_room_retry(struct store *s, const char *host, struct err *why);

/* One that is gone is found by its tombstone: id, owner, host, generation, state gone. */
must_check int store_sandbox_get(struct store *s, const char *owner, const char *id,
				 struct sandbox *ret, struct err *e);

/*
 * By id, identity key or name. `self` is whose of several is meant if an admin
 * asks (owner NULL); of others' more than one is ERR_CONFLICT.
 */
struct sandbox_search {
	const char *owner, *self;
	enum sandbox_address kind;
	const char *text;
	const char *legacy; /* of a key: also this one; NULL: none */
};
must_check int store_sandbox_find(struct store *s, const struct sandbox_search *search,
				  struct sandbox *ret, struct err *e);

/*
 * Those that follow hand over every record they find but what cannot be read: one that is damaged
 * stops no other. They return how many were left out so, and `e` names the first of them; or -1.
 */
typedef void sandbox_fn(const struct sandbox *sb, void *arg);

/* In order of id, those behind `after` ("": from the start), at most `limit`. */
struct sandbox_page {
	const char *owner; /* NULL: all */
	const char *after;
	uint32_t limit;                  /* 1 to STORE_LIST_MAX */
	const struct selector *selector; /* NULL: all */
	const char *state;               /* NULL or "": any */
};
must_check int store_sandbox_list(struct store *s, const struct sandbox_page *page,
				  sandbox_fn *on_row, void *arg, struct err *e);

/*
 * A compare-and-set: only from this state of this generation, and, unless
 * `version` is 0, only if nothing changed since. Otherwise ERR_CONFLICT.
 * A reason that is too long is cut. Not to gone: that is store_sandbox_erase().
 */
struct sandbox_move {
	const char *id;
	uint64_t generation;
	uint64_t version; /* 0: any */
	enum sandbox_state from, to;
	const char *event;                       /* for the log; NULL: none that has a name */
	uint64_t attempt;                        /* for the log: whose step this is; 0: none */
	const char *reason;                      /* NULL: none */
	const struct stop *stop;                 /* the ladder of a deletion; NULL: none */
	uint64_t deadline_ms;                    /* from now; 0: none */
	uint32_t guest;                          /* its init's version, and its host's; 0: stays */
	const struct idempotency_answer *answer; /* stored if it moves; NULL: none */
};
must_check int store_sandbox_move(struct store *s, const struct sandbox_move *move,
				  struct sandbox *ret, struct err *e);

/* What its owner may change. Members that are NULL stay; the version must be the one read. */
struct sandbox_patch {
	const char *id;
	uint64_t version;
	const char *labels, *env; /* JSON */
	const uint64_t *sleep_after_ms;
	const uint64_t *lifetime_ms; /* from now, 0: no end */
	const bool *keep_alive;
	const uint64_t *deadline_ms; /* from now, 0: none */
	const struct limits *limits; /* never NULL, as the next: the old ones, if they stay */
	const char *profile;
	bool limits_pending;               /* berth-node is to be told of them */
	const struct limits *was;          /* if they change: what they were, */
	const char *host;                  /* where, and */
	const struct placement_host *room; /* what it has */
};
must_check int store_sandbox_patch(struct store *s, const struct sandbox_patch *patch,
				   struct sandbox *ret, struct err *e);

/* berth-node has done it; if the record changed meanwhile, it may have to do more. */
must_check int store_sandbox_limits_done(struct store *s, const char *id, uint64_t version,
					 struct sandbox *ret, struct err *e);

/* The version of its init, seen of this version of the record. With an event as one of its log. */
struct sandbox_guest {
	const char *id;
	uint64_t version;
	struct guest_versions seen;
	const char *event;  /* NULL: nothing a reader has to know */
	const char *reason; /* of the event */
};
must_check int store_sandbox_guest(struct store *s, const struct sandbox_guest *guest,
				   struct sandbox *ret, struct err *e);

/* The alarm of a record at rest, moved; nothing happens if the record changed meanwhile. */
must_check int store_sandbox_rearm(struct store *s, const char *id, uint64_t version,
				   uint64_t deadline_ms, struct err *e);

/* When sandboxes were last used, and since when they are busy; older news change nothing. */
struct sandbox_used {
	char id[SANDBOX_ID_SIZE];
	uint64_t ago_ms;
	uint64_t busy_ago_ms; /* 0: it is not busy */
};
must_check int store_sandboxes_used(struct store *s, const struct sandbox_used *used, size_t n,
				    struct err *e);

/*
 * Nothing but the host knows of it, and an operator wants it gone: the record of one that is
 * to be deleted, of which no attempt was made yet. ERR_CONFLICT if there is a record or a
 * tombstone of this id.
 */
struct sandbox_orphan {
	const char *id, *host;
	uint64_t generation; /* the latest that is there */
	const char *owner;   /* who may read of it from now on */
	const char *reason;  /* for its log: by whom */
	uint64_t deadline_ms;
};
must_check int store_sandbox_abandon(struct store *s, const struct sandbox_orphan *orphan,
				     struct sandbox *ret, struct err *e);

struct tombstone {
	char id[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	char host[SANDBOX_HOST_SIZE];
	uint64_t generation;
	uint64_t deleted_ms;
	char receipt[STORE_RECEIPT_MAX + 1];
};

/*
 * The end: a deleting sandbox's row becomes a tombstone. Again: the tombstone
 * that is there, with the first receipt. ERR_CONFLICT if it is not deleting, of
 * another generation, or if `attempt` is not the one in flight; ERR_NOT_FOUND if
 * it never was.
 */
struct sandbox_end {
	const char *id;
	uint64_t generation;
	uint64_t attempt; /* whose observation this is */
	const char *receipt;
};
must_check int store_sandbox_erase(struct store *s, const struct sandbox_end *end,
				   struct tombstone *ret, struct err *e);
must_check int store_tombstone_get(struct store *s, const char *owner, const char *id,
				   struct tombstone *ret, struct err *e);

/*
 * Every record of this host, in order of id, for reconciling. A page is a transaction of
 * its own: what is made meanwhile may be missed.
 */
must_check int store_sandboxes_of_host(struct store *s, const char *host, sandbox_fn *on_row,
				       void *arg, struct err *e);

/*
 * Those of this host whose deadline has passed; the limit takes the oldest, in
 * no order. In the same statement the deadline is pushed `again_ms` forward, so
 * that only one worker gets each, and it comes back should that worker die. Not
 * that of a deletion: it is the ladder's own, and beginning the attempt moves it. But that of any
 * row that is damaged: no attempt of it begins, and it would keep its place for ever.
 */
struct sandbox_due {
	const char *host;
	uint32_t limit; /* 1 to STORE_LIST_MAX */
	uint32_t again_ms;
};
must_check int store_sandboxes_due(struct store *s, const struct sandbox_due *due,
				   sandbox_fn *on_row, void *arg, struct err *e);

/* How many of the host are due now. */
must_check int store_sandboxes_overdue(struct store *s, const char *host, uint64_t *ret,
				       struct err *e);

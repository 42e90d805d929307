/*
 * One sandbox being changed: write, act, write. The record says what should be
 * before berth-node is asked for anything, and what was seen afterwards. The
 * decisions are core/lifecycle's; this carries them out, for a request or for
 * berthd itself (reconciling after a restart, a deadline that passed).
 */
#pragma once

#include "berthd/control/reconcile.h"
#include "berthd/runtime/reactor.h"
#include "core/lifecycle.h"
#include "core/sandbox-asked.h"
#include "proto/node.h"
#include "store/alert.h"
#include "store/host.h"
#include "store/sandbox.h"

/* Who asks for a sandbox, as the body says. */
struct create_identity {
	char org[IDENTITY_PART_MAX + 1];
	char user[IDENTITY_PART_MAX + 1];
	char bot[IDENTITY_PART_MAX + 1];
	char session[IDENTITY_PART_MAX + 1];
	bool given;
};

struct transition;
typedef void transition_fn(struct transition *c, const struct err *why);

struct transition {
	struct reactor *reactor;
	struct job job;
	char request[NODE_REQUEST_SIZE];  /* whose, for the logs of both daemons */
	struct sandbox sb;                /* as last read or written */
	uint64_t read_mono_ms;            /* when that was */
	struct tombstone tomb;            /* when it is gone */
	struct node_observation seen;     /* by berth-node, last */
	struct sandbox_spec spec;         /* of a new one */
	struct create_identity who;       /* of a new one */
	char *network;                    /* of a new one: what it may reach; NULL: nothing */
	struct sandbox_asked *asked;      /* of a new one: what was said, and nothing else */
	struct placement_host host;       /* of a new one: what its host has */
	struct host_capacity figures;     /* and its engines; all zero: not known */
	bool full;                        /* of a new one: its host has no capacity for it */
	bool cleared;                     /* of a new one: leftovers were looked for already */
	struct reconcile_counts clearing; /* and what came of that */
	bool found;                       /* of a new one: it was there already */
	const struct err *nowhere;        /* of a new one: why none may be made; NULL: it may */
	struct idempotency_use use;       /* of a new one; an empty key: it came without */
	bool used_before;                 /* that key was, and nothing was written */
	struct step step;
	enum sandbox_event ev;
	const char *event;            /* what happened, for the logs */
	bool wrote;                   /* the record was changed */
	uint64_t epoch;               /* of this host when it was begun */
	uint64_t attempt;             /* of the deletion, that this carries out */
	enum stop_action action;      /* of the deletion, next */
	const char *owner;            /* whose it must be; NULL: anybody's */
	bool woken;                   /* it is started again: its files must stay */
	bool strict;                  /* the event was seen of this version of the record */
	char marked[SANDBOX_ID_SIZE]; /* berthd->inflight has it; empty: none */
	struct err why;               /* what goes into the record, and to the caller at last */
	transition_fn *next;          /* after the write that is under way */
	transition_fn *done;          /* the caller's; then the change is the caller's to free */
	transition_fn *created;       /* of a new one: control_create()'s caller's */
	unsigned up_step;             /* of those that bring it up: the next one */
	unsigned pauses;              /* how often berth-node was still at an earlier call */
	void *data;
};

struct transition *transition_new(struct reactor *r, const char *request);
void transition_free(struct transition *c);

/*
 * Insert c->sb as spec says, build it, bring it up. With c->use only if its key
 * is free: otherwise it ends with ERR_CONFLICT, and c->used_before says why.
 */
void transition_create(struct transition *c, transition_fn *done);

/*
 * An event happened to c->sb.id: write what it means, and do what has to be
 * done. With c->sb.version set it was seen of that version: if the record has
 * changed since, nothing happens and ERR_CONFLICT says so.
 */
void transition_event(struct transition *c, enum sandbox_event ev, const char *reason,
		      transition_fn *done);

/* ---- for those who carry out changes ---- */

/* From here on others leave the sandbox alone; until transition_free(). */
void transition_mark(struct transition *c);

/* On a worker; then, if it was written, it is told, and `next` goes on. */
void transition_write(struct transition *c, int (*run)(struct job *, struct store *, struct err *),
		      transition_fn *next);

/*
 * Once store_alert_raise() has it: to its followers, as the event `alert`, and to the log.
 * `todo` is what a person can do about it.
 */
void alert_tell(struct berthd *b, const struct alert *a, const char *request, const char *todo);

/* The deadline of the record in the state it is about to have; 0: none. */
uint64_t transition_deadline_ms(const struct transition *c, enum sandbox_state to);

void transition_target(const struct transition *c, struct node_target *ret);

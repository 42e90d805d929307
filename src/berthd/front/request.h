/*
 * One request on its way through berthd: which route it took, whose key it
 * came with, and the answer. It outlives its client: work that was begun is
 * finished, and only the answer is then dropped.
 */
#pragma once

#include "berthd/front/key-cache.h"
#include "berthd/runtime/caller.h"
#include "berthd/runtime/reactor.h"
#include "core/role.h"
#include "http/exchange.h"
#include "lib/buf.h"
#include "store/key.h"

#define REQUEST_ID_SIZE    96          /* a client's trace id, and our own */
#define REQUEST_PARAM_MAX  700         /* the longest identity key */
#define REQUEST_TARGET_MAX (32 * 1024) /* more than the head it stands in may have */
#define REQUEST_BODY_MAX   (1024 * 1024)
#define REPLY_MAX          (64 * 1024 * 1024)

struct request;

/* What the first {} of a path is. */
enum route_flags {
	ROUTE_SANDBOX = 1, /* a sandbox, by id, name or identity key; its host answers */
	ROUTE_RECORDS = 2, /* the records alone answer: any host can */
	ROUTE_ANEW = 4,    /* its name is looked up in the records, not in the cache */
	ROUTE_DELETES = 8, /* the wish alone can be written, while its host is away */
};

struct route {
	const char *method;
	const char *path; /* {} matches one segment; the second {} goes to `sub` */
	enum role role;   /* zero denies */
	unsigned sandbox; /* enum route_flags; 0: the path names none */
	bool body;        /* a JSON body is collected first */

	/* One of the two: on a store worker, straight through; or on the loop. */
	int (*store)(struct request *rq, struct store *s, struct buf *reply, struct err *e);
	void (*loop)(struct request *rq);

	const char *query; /* the members its query may have, with a blank between; NULL: none */
};
const struct route *routes_table(size_t *count);

struct request {
	struct reactor *reactor;
	struct http_exchange *x; /* NULL: the client is gone, or was answered */
	const struct route *route;
	char id[REQUEST_ID_SIZE]; /* begins with the client's trace id: core/trace.h */
	char method[16];
	char *path, *query; /* whole, as they came */
	char param[REQUEST_PARAM_MAX];
	char sub[REQUEST_PARAM_MAX];
	char key_hash[65];
	struct key_lookup key_lookup;
	struct key key;
	struct buf body;
	bool collecting;         /* the body is on its way */
	bool wants_events;       /* Accept: text/event-stream */
	bool from_peer;          /* another host hands it on: it goes no further */
	struct placing *placing; /* of a create in a cell: where it was tried; one block */
	uint64_t started_us;
	struct job job;
	struct buf reply;
	int status; /* a store handler may set another than 200 */

	void (*on_gone)(struct request *rq); /* a loop handler's; the request stays its own */
	void (*on_drain)(struct request *rq);
	void *data;
};

/* Each of these ends the request and frees it. */
void request_reply(struct request *rq, int status, const struct buf *json);
void request_fail(struct request *rq, const struct err *e);
void request_end(struct request *rq, int status); /* a stream or tunnel is over: log and free */
/* The same of an answer that had begun with `status` and could not go on. */
void request_end_cut(struct request *rq, int status, const struct err *why);

/* Whose things this request may see; NULL for an admin, who sees all. */
const char *request_owner(const struct request *rq);

struct caller request_caller(const struct request *rq); /* as long as the request lives */

/* `?after=N`, 0 without it: a list goes on behind what has this number. */
must_check int request_after(const struct request *rq, uint64_t *ret, struct err *e);

/* {"code":…,"message":…,"remediation":…,"request_id":…} */
void request_error_json(const struct request *rq, const struct err *e, struct buf *out);

/* Server-sent events. */
void request_stream(struct request *rq);
bool request_event(struct request *rq, const char *name, const struct buf *json); /* true: full */
bool request_event_at(struct request *rq, const char *name, const char *id,
		      const struct buf *json); /* the id a client comes back with */

/*
 * One operation on a sandbox's files on its way through berthd: the request
 * that asked for it, the link to init that does it, and what comes back.
 *
 * However it ends, it ends once: file_call_reply() or file_call_fail(), or the
 * client goes first and the link is closed, which init takes as "give it up".
 */
#pragma once

#include "berthd/exec/init-link.h"
#include "berthd/front/idempotent-op.h"
#include "berthd/front/request.h"
#include "proto/files.h"

struct file_call;

struct file_call_events {
	/* The request was sent. May be NULL. */
	void (*opened)(struct file_call *c);
	void (*entry)(struct file_call *c, const struct file_entry *x);   /* may be NULL */
	void (*change)(struct file_call *c, const struct file_change *x); /* may be NULL */
	bool (*bytes)(struct file_call *c, const uint8_t *b, size_t len); /* may be NULL */
	void (*drained)(struct file_call *c);                             /* may be NULL */
	void (*done)(struct file_call *c, const struct file_done *done);  /* ends it */
};

enum file_range_type {
	FILE_RANGE_NONE,
	FILE_RANGE_FROM,    /* bytes=a- */
	FILE_RANGE_BETWEEN, /* bytes=a-b */
	FILE_RANGE_LAST,    /* bytes=-n */
};

/* Of a read: what was asked for, then what there is of it. */
struct file_range {
	enum file_range_type type;
	uint64_t from, length;
};

struct file_call {
	struct request *rq;
	struct init_link *link;
	const struct file_call_events *events;
	struct file_request ask;
	struct buf json; /* the answer as it grows */
	uint64_t count;  /* entries so far */
	char last[FILE_PATH_SIZE];
	bool streaming;   /* the reply has begun */
	bool events_sent; /* it is a stream of events: an error is one, too */
	struct file_range range;
	struct idempotent_op *once; /* NULL: it came without a key */
	/* init may be doing it: how it ends is not known before it says */
	bool acting;
	int status;   /* of the answer */
	bool failing; /* it failed, and this is why */
	struct err why;
};

/*
 * Begin what `ask` says in the sandbox rq->param. A request that cannot be right
 * is refused at once. `range` may be NULL.
 */
void file_call_begin(struct request *rq, const struct file_request *ask,
		     const struct file_range *range, const struct file_call_events *events);

/* All of the body is there: have it done. */
void file_call_commit(struct file_call *c);

void file_call_reply(struct file_call *c, int status); /* with c->json */
void file_call_end(struct file_call *c, int status);   /* without any, or it was streamed */
void file_call_fail(struct file_call *c, const struct err *why);

/* ---- what requests say, what answers say ---- */

/* The query's path into ask->path, and its flags. */
must_check int file_query(const struct request *rq, struct file_request *ask, struct err *e);
must_check int file_query_flag(const struct request *rq, const char *name, uint32_t flag,
			       struct file_request *ask, struct err *e);
must_check int file_mode(const char *text, struct file_request *ask, struct err *e);

/* "name", or "name_base64" if it is not UTF-8. */
void file_json_name(struct buf *out, const char *name, const char *value);
void file_entry_json(struct buf *out, const struct file_entry *x);

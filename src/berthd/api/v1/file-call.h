/*
 * A request for one operation on a sandbox's files (berthd/exec/file-op.h), and its answer.
 *
 * However it ends, it ends once: file_call_reply() or file_call_fail(), or the
 * client goes first and the operation is given up.
 */
#pragma once

#include "berthd/exec/file-op.h"
#include "berthd/front/idempotent-op.h"
#include "berthd/front/request.h"

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
	const struct file_op_sink *sink;
	struct file_op *op; /* NULL: not begun, or over */
	struct file_request ask;
	struct buf json;  /* the answer as it grows */
	bool streaming;   /* the reply has begun */
	bool events_sent; /* it is a stream of events: an error is one, too */
	struct file_range range;
	struct idempotent_op *once; /* NULL: it came without a key */
	int status;                 /* of the answer */
	bool failing;               /* it failed, and this is why: */
	struct err why;
	bool unsure; /* how it ended is not known */
};

/*
 * Begin what `ask` says in the sandbox rq->param; the sink is given the call. A request that
 * cannot be right is refused at once. `range` may be NULL.
 */
void file_call_begin(struct request *rq, const struct file_request *ask,
		     const struct file_range *range, const struct file_op_sink *sink);

/* All of the body is there: have it done. */
void file_call_commit(struct file_call *c);

void file_call_reply(struct file_call *c, int status); /* with c->json */
void file_call_end(struct file_call *c, int status);   /* without any, or it was streamed */
void file_call_fail(struct file_call *c, const struct err *why);
void file_call_failed(void *data, const struct err *why, bool unsure); /* every sink's */

/* ---- what requests say, what answers say ---- */

/* The query's path into ask->path, and its flags. */
must_check int file_query(const struct request *rq, struct file_request *ask, struct err *e);
must_check int file_query_flag(const struct request *rq, const char *name, uint32_t flag,
			       struct file_request *ask, struct err *e);
must_check int file_mode(const char *text, struct file_request *ask, struct err *e);

/* "name", or "name_base64" if it is not UTF-8. */
void file_json_name(struct buf *out, const char *name, const char *value);
void file_entry_json(struct buf *out, const struct file_entry *x);

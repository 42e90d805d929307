/* PUT files: a body on its way into a sandbox, no faster than the sandbox takes it. */
#include <string.h>

#include "berthd/api/v1/file-call.h"
#include "berthd/api/v1/files.h"
#include "http/target.h"
#include "lib/json.h"

static void on_body(struct http_exchange *x, const char *data, size_t len)
{
	struct request *rq = x->data;
	struct file_call *c = rq->data;

	if (c->once)
		idempotent_op_add(c->once, data, len);
	if (file_op_send(c->op, data, len))
		http_body_pause(x);
}

static void on_body_end(struct http_exchange *x)
{
	struct request *rq = x->data;

	file_call_commit(rq->data);
}

static void on_opened(void *data)
{
	struct file_call *c = data;

	if (c->rq->x)
		http_body_read(c->rq->x, on_body, on_body_end);
}

static void on_drained(void *data)
{
	struct file_call *c = data;

	if (c->rq->x)
		http_body_resume(c->rq->x);
}

static void on_done(void *data, const struct file_result *result)
{
	struct file_call *c = data;

	file_entry_json(&c->json, result->entry);
	file_call_reply(c, result->count == 1 ? 201 : 200);
}

static const struct file_op_sink sink = {
	.opened = on_opened,
	.drained = on_drained,
	.done = on_done,
	.failed = file_call_failed,
};

/* ---- a whole tree ---- */

static void unpack_done(void *data, const struct file_result *result)
{
	struct file_call *c = data;

	json_open(&c->json, '{');
	json_int(&c->json, "entries", (int64_t)result->count);
	buf_adds(&c->json, "}");
	file_call_reply(c, 200);
}

static const struct file_op_sink unpack_sink = {
	.opened = on_opened,
	.drained = on_drained,
	.done = unpack_done,
	.failed = file_call_failed,
};

void files_unpack(struct request *rq)
{
	struct file_request ask = { .verb = FILE_UNPACK };
	struct err e;

	if (file_query(rq, &ask, &e) < 0)
		return request_fail(rq, &e);
	file_call_begin(rq, &ask, NULL, &unpack_sink);
}

/* ---- one file ---- */

void files_write(struct request *rq)
{
	struct file_request ask = { .verb = FILE_WRITE };
	char mode[16] = "";
	bool found;
	struct err e;

	if (file_query(rq, &ask, &e) < 0 ||
	    file_query_flag(rq, "parents", FILE_PARENTS, &ask, &e) < 0 ||
	    http_query(rq->x->query, "mode", mode, sizeof(mode), &found, &e) < 0 ||
	    (found && file_mode(mode, &ask, &e) < 0))
		return request_fail(rq, &e);
	file_call_begin(rq, &ask, NULL, &sink);
}

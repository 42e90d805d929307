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
	if (init_link_send(c->link, FRAME_DATA, data, len))
		http_body_pause(x);
}

static void on_body_end(struct http_exchange *x)
{
	struct request *rq = x->data;
	struct file_call *c = rq->data;

	file_call_commit(c);
}

static void on_opened(struct file_call *c)
{
	if (c->rq->x)
		http_body_read(c->rq->x, on_body, on_body_end);
}

static void on_drained(struct file_call *c)
{
	if (c->rq->x)
		http_body_resume(c->rq->x);
}

static void on_entry(struct file_call *c, const struct file_entry *x)
{
	buf_clear(&c->json);
	file_entry_json(&c->json, x);
}

static void on_done(struct file_call *c, const struct file_done *done)
{
	struct err e;

	if (c->count == 0) {
		err_set(&e, ERR_INTERNAL, "the sandbox's init gave no answer");
		return file_call_fail(c, &e);
	}
	file_call_reply(c, done->count == 1 ? 201 : 200);
}

static const struct file_call_events events = {
	.opened = on_opened,
	.drained = on_drained,
	.entry = on_entry,
	.done = on_done,
};

/* ---- a whole tree ---- */

static void unpack_done(struct file_call *c, const struct file_done *done)
{
	json_open(&c->json, '{');
	json_int(&c->json, "entries", (int64_t)done->count);
	buf_adds(&c->json, "}");
	file_call_reply(c, 200);
}

static const struct file_call_events unpack_events = {
	.opened = on_opened,
	.drained = on_drained,
	.done = unpack_done,
};

void files_unpack(struct request *rq)
{
	struct file_request ask = { .verb = FILE_UNPACK };
	struct err e;

	if (file_query(rq, &ask, &e) < 0)
		return request_fail(rq, &e);
	file_call_begin(rq, &ask, NULL, &unpack_events);
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
	file_call_begin(rq, &ask, NULL, &events);
}

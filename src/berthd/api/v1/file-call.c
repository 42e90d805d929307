#include "berthd/api/v1/file-call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"

/* ---- its life ---- */

static struct request *call_free(struct file_call *c)
{
	struct request *rq = c->rq;

	file_op_close(c->op);
	idempotent_op_free(c->once);
	buf_done(&c->json);
	free(c);
	return rq;
}

static void tell(struct file_call *c)
{
	cleanup(buf_done) struct buf json = c->json;
	int status = c->status;

	c->json = (struct buf){ 0 };
	request_reply(call_free(c), status, &json);
}

/* If it could not be stored it is true all the same; the next one under this key will see. */
static void on_answer_stored(void *data, const struct err *why)
{
	(void)why;
	tell(data);
}

void file_call_reply(struct file_call *c, int status)
{
	c->status = status;
	file_op_close(take_ptr(c->op));
	if (c->once && c->once->taken)
		return idempotent_op_answer(c->once, status, &c->json, on_answer_stored, c);
	tell(c);
}

void file_call_end(struct file_call *c, int status)
{
	bool streaming = c->streaming;
	struct request *rq = call_free(c);

	if (rq->x && streaming)
		http_stream_end(take_ptr(rq->x));
	else if (rq->x)
		http_reply(take_ptr(rq->x), status, NULL, NULL, 0);
	request_end(rq, status);
}

static void tell_failure(struct file_call *c)
{
	cleanup(buf_done) struct buf json = buf_make(4096);
	bool streaming = c->streaming, as_event = c->events_sent;
	int begun = c->range.type == FILE_RANGE_NONE ? 200 : 206;
	struct err e = c->why;
	struct request *rq = call_free(c);

	if (!streaming)
		return request_fail(rq, &e);
	request_error_json(rq, &e, &json);
	if (as_event)
		(void)request_event(rq, "error", &json);
	if (rq->x && as_event)
		http_stream_end(take_ptr(rq->x));
	else if (rq->x)
		http_abort(take_ptr(rq->x)); /* half an answer must not look like a whole one */
	request_end_cut(rq, begun, &e);
}

static void on_key_given_back(void *data, const struct err *why)
{
	(void)why; /* then it stays taken; the next request is told that the end is unknown */
	tell_failure(data);
}

void file_call_fail(struct file_call *c, const struct err *why)
{
	c->why = *why;
	c->failing = true;
	file_op_close(take_ptr(c->op));
	if (c->once && c->once->busy)
		return; /* who comes back from there will see */
	if (c->once && c->once->taken && !c->unsure)
		return idempotent_op_give_back(c->once, on_key_given_back, c);
	tell_failure(c);
}

void file_call_failed(void *data, const struct err *why, bool unsure)
{
	struct file_call *c = data;

	c->unsure = unsure;
	file_call_fail(c, why);
}

/* With a key it is done whether the client waits or not: a request that repeats it is answered. */
static void on_gone(struct request *rq)
{
	struct file_call *c = rq->data;

	if (c->failing || (c->once && (c->once->busy || c->once->taken)))
		return;
	(void)call_free(c);
	request_end(rq, 499);
}

static void on_drain(struct request *rq)
{
	struct file_call *c = rq->data;

	if (c->op)
		file_op_resume(c->op);
}

/* ---- once ---- */

/* The first one's answer. */
static void answer_again(struct file_call *c)
{
	if (c->rq->x)
		(void)!http_reply_header(c->rq->x, "Idempotency-Replayed", "true");
	c->status = (int)c->once->first.status;
	buf_clear(&c->json);
	buf_adds(&c->json, c->once->first.response);
	file_op_close(take_ptr(c->op));
	tell(c);
}

/* True if that was all. */
static bool settled(struct file_call *c, const struct err *why)
{
	struct err e;

	if (!c->failing && !why && c->once->taken)
		return false;
	if (c->failing) { /* meanwhile */
		e = c->why;
		file_call_fail(c, &e);
	} else if (why) {
		file_call_fail(c, why);
	} else {
		answer_again(c);
	}
	return true;
}

static void on_taken_with_body(void *data, const struct err *why)
{
	struct file_call *c = data;

	if (!settled(c, why))
		file_op_commit(c->op);
}

void file_call_commit(struct file_call *c)
{
	if (c->once)
		return idempotent_op_take(c->once, on_taken_with_body, c);
	file_op_commit(c->op);
}

/* ---- its beginning ---- */

static void begin(struct file_call *c)
{
	struct caller by = request_caller(c->rq);
	struct file_begin b = {
		.by = &by,
		.sandbox = c->rq->param,
		.ask = &c->ask,
		.sink = c->sink,
		.data = c,
	};
	struct err e;

	if (file_op_begin(&b, &c->op, &e) < 0)
		file_call_fail(c, &e);
}

static void on_taken_first(void *data, const struct err *why)
{
	if (!settled(data, why))
		begin(data);
}

static int read_key(struct file_call *c, struct err *e)
{
	switch ((enum file_verb)c->ask.verb) {
	case FILE_WRITE:
	case FILE_MKDIR:
	case FILE_MOVE:
	case FILE_REMOVE:
		if (idempotent_op_new(c->rq, &c->once, e) < 0)
			return -1;
		if (c->once)
			c->once->repeat = c->ask.verb == FILE_WRITE;
		return 0;
	default:
		return 0;
	}
}

void file_call_begin(struct request *rq, const struct file_request *ask,
		     const struct file_range *range, const struct file_op_sink *sink)
{
	struct file_call *c;
	struct err e;

	if (file_request_check(ask, &e) < 0) /* before its key is looked at */
		return request_fail(rq, &e);
	c = xcalloc(1, sizeof(*c));
	c->rq = rq;
	c->ask = *ask;
	c->sink = sink;
	if (range)
		c->range = *range;
	c->json = buf_make(REPLY_MAX);
	rq->data = c;
	rq->on_gone = on_gone;
	rq->on_drain = on_drain;
	if (read_key(c, &e) < 0)
		return file_call_fail(c, &e);
	if (c->once && !file_verb_takes_body(ask->verb))
		return idempotent_op_take(c->once, on_taken_first, c);
	begin(c);
}

/* ---- what requests say ---- */

int file_query(const struct request *rq, struct file_request *ask, struct err *e)
{
	bool found;

	if (http_query(rq->x->query, "path", ask->path, sizeof(ask->path), &found, e) < 0) {
		err_set(e, ERR_INVALID, "the path is too long, or not percent-encoded");
		return err_reason(e, "name_too_long", 0);
	}
	if (!found)
		return err_set(e, ERR_INVALID, "the query has no path");
	return 0;
}

int file_query_flag(const struct request *rq, const char *name, uint32_t flag,
		    struct file_request *ask, struct err *e)
{
	char text[16] = "";
	bool found;

	if (http_query(rq->x->query, name, text, sizeof(text), &found, e) < 0)
		return -1;
	if (!found || strcmp(text, "0") == 0 || strcmp(text, "false") == 0)
		return 0;
	if (text[0] && strcmp(text, "1") != 0 && strcmp(text, "true") != 0)
		return err_set(e, ERR_INVALID, "%s is 0 or 1, not \"%s\"", name, text);
	ask->flags |= flag;
	return 0;
}

int file_mode(const char *text, struct file_request *ask, struct err *e)
{
	uint32_t mode = 0;

	if (!text[0] || strlen(text) > 5)
		return err_set(e, ERR_INVALID, "the mode is not octal: \"%.20s\"", text);
	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '7')
			return err_set(e, ERR_INVALID, "the mode is not octal: \"%.20s\"", text);
		mode = mode * 8 + (uint32_t)(*at - '0');
	}
	ask->mode = mode;
	ask->flags |= FILE_HAS_MODE;
	return 0;
}

/* ---- what answers say ---- */

void file_json_name(struct buf *out, const char *name, const char *value)
{
	size_t len = strlen(value);
	char key[32];

	if (utf8_valid_prefix(value, len) == len)
		return json_str(out, name, value);
	snprintf(key, sizeof(key), "%s_base64", name);
	json_key(out, key);
	buf_adds(out, "\"");
	base64_add(out, value, len);
	buf_adds(out, "\"");
}

void file_entry_json(struct buf *out, const struct file_entry *x)
{
	const char *slash = strrchr(x->path, '/');
	char modified[TIME_TEXT_SIZE], mode[16];

	time_text((int64_t)x->mtime_ns > 0 ? x->mtime_ns / 1000000 : 0, modified);
	snprintf(mode, sizeof(mode), "%04o", x->mode);
	json_open(out, '{');
	file_json_name(out, "name", slash ? slash + 1 : x->path);
	file_json_name(out, "path", x->path);
	json_str(out, "type", file_type_name(x->type));
	json_int(out, "size", (int64_t)x->size);
	json_str(out, "mode", mode);
	json_int(out, "uid", x->uid);
	json_int(out, "gid", x->gid);
	json_str(out, "modified_at", modified);
	if (x->type == FILE_TYPE_SYMLINK)
		file_json_name(out, "target", x->target);
	buf_adds(out, "}");
}

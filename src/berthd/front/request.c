#include "berthd/front/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/front/incidents.h"
#include "berthd/runtime/error-json.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"

#define LOG_PATH_MAX 255 /* bytes of a path in the log */

const char *request_owner(const struct request *rq)
{
	return rq->key.role == ROLE_ADMIN ? NULL : rq->key.owner;
}

struct caller request_caller(const struct request *rq)
{
	return (struct caller){ rq->reactor, rq->id, request_owner(rq) };
}

int request_after(const struct request *rq, uint64_t *ret, struct err *e)
{
	char text[24];
	bool found;

	*ret = 0;
	if (http_query(rq->query, "after", text, sizeof(text), &found, e) < 0 ||
	    (found && str_u64(text, ret, e) < 0))
		return err_wrap(e, "after");
	if (*ret > INT64_MAX) /* the database's numbers end there */
		return err_set(e, ERR_INVALID, "after: too large");
	return 0;
}

void request_error_json(const struct request *rq, const struct err *e, struct buf *out)
{
	error_json(rq->id, e, out);
}

static void log_line_at(enum log_level level, const struct request *rq, int status, const char *why)
{
	char ms[32], code[16], path[LOG_PATH_MAX + 1];

	snprintf(ms, sizeof(ms), "%.3f", (double)(time_mono_us() - rq->started_us) / 1000);
	snprintf(code, sizeof(code), "%d", status);
	snprintf(path, sizeof(path), "%s", rq->path);
	log_event(level, "request", "method", rq->method, "path",
		  path, "status", code, "ms", ms, "request_id", rq->id, "key",
		  rq->key.id[0] ? rq->key.id : NULL, "why", why, NULL);
}

static void log_line(const struct request *rq, int status, const char *why)
{
	log_line_at(status >= 500 ? LOG_WARN : LOG_INFO, rq, status, why);
}

static void request_free(struct request *rq)
{
	buf_done(&rq->body);
	buf_done(&rq->reply);
	free(rq->placing);
	free(rq->path);
	free(rq->query);
	free(rq);
}

void request_end(struct request *rq, int status)
{
	log_line(rq, status, NULL);
	request_free(rq);
}

void request_end_cut(struct request *rq, int status, const struct err *why)
{
	char text[sizeof(why->msg) + 16];

	snprintf(text, sizeof(text), "cut: %s", why->msg);
	log_line_at(err_status(why) >= 500 ? LOG_WARN : LOG_INFO, rq, status, text);
	request_free(rq);
}

void request_reply(struct request *rq, int status, const struct buf *json)
{
	struct err e;

	if (buf_overflowed(json)) { /* never half an answer with a whole one's status */
		err_set(&e, ERR_INTERNAL, "the answer has more than %d MiB", REPLY_MAX >> 20);
		err_fix(&e, "Ask for less at once: a smaller `limit`, a filter, or a stream.");
		return request_fail(rq, &e);
	}
	log_line(rq, status, rq->x ? NULL : "the client is gone");
	if (rq->x)
		http_reply(rq->x, status, "application/json", json->data, json->len);
	request_free(rq);
}

void request_fail(struct request *rq, const struct err *e)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	int status = err_status(e);
	char retry[16];

	log_line(rq, status, e->msg);
	incidents_note(rq, e);
	request_error_json(rq, e, &body);
	snprintf(retry, sizeof(retry), "%u", e->retry_s ? e->retry_s : 1);
	if (rq->x && status == 503)
		(void)!http_reply_header(rq->x, "Retry-After", retry);
	if (rq->x)
		http_reply(rq->x, status, "application/json", body.data, body.len);
	request_free(rq);
}

void request_stream(struct request *rq)
{
	if (rq->x)
		http_stream_begin(rq->x, 200, "text/event-stream");
}

bool request_event(struct request *rq, const char *name, const struct buf *json)
{
	return request_event_at(rq, name, NULL, json);
}

bool request_event_at(struct request *rq, const char *name, const char *id, const struct buf *json)
{
	cleanup(buf_done) struct buf out = buf_make(REPLY_MAX);

	if (!rq->x)
		return false;
	if (id)
		buf_addf(&out, "id: %s\n", id);
	buf_addf(&out, "event: %s\ndata: ", name);
	buf_add(&out, json->data, json->len);
	buf_adds(&out, "\n\n");
	return http_stream_data(rq->x, out.data, out.len);
}

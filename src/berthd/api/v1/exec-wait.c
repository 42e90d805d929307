/* GET .../execs/{}/wait: until it ends, says something, or listens on a port. */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/exec/exec.h"
#include "berthd/exec/init-link.h"
#include "http/target.h"
#include "lib/errno-map.h"
#include "lib/json.h"
#include "lib/pattern.h"
#include "lib/str.h"
#include "proto/writer.h"

#define TEXT_MAX    256
#define WAIT_MAX_MS (3600 * 1000)
#define WAIT_MS     60000

struct wait {
	struct request *rq;
	struct tail *tail;
	struct init_link *port; /* for a port */
	uint32_t port_number;
	uv_timer_t timer;
	char text[TEXT_MAX];         /* that is looked for; or an expression: */
	struct pattern *pattern;     /* NULL: it is none */
	struct pattern_look look[2]; /* in each stream */
	struct buf seen[2];          /* of each stream: what the text may still begin in */
};

static void wait_free(struct wait *w)
{
	buf_done(&w->seen[0]);
	buf_done(&w->seen[1]);
	free(w->pattern);
	free(w);
}

static void on_timer_closed(uv_handle_t *handle)
{
	wait_free(handle->data);
}

/* The request is the caller's to answer. */
static struct request *wait_close(struct wait *w)
{
	struct request *rq = w->rq;

	init_link_close(take_ptr(w->port));
	tail_close(take_ptr(w->tail));
	uv_close((uv_handle_t *)&w->timer, on_timer_closed);
	return rq;
}

static void answer(struct wait *w, bool ready, const char *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	json_open(&body, '{');
	json_bool(&body, "ready", ready);
	json_str(&body, "why", why);
	json_key(&body, "exec");
	exec_record_json(&body, w->tail->journal);
	buf_adds(&body, "}");
	request_reply(wait_close(w), 200, &body);
}

static void on_time_out(uv_timer_t *timer)
{
	answer(timer->data, false, "timeout");
}

/* ---- what it says ---- */

/* Text may begin in what came before. */
static bool find_text(const struct wait *w, struct buf *seen, const uint8_t *data, size_t len)
{
	size_t n = strlen(w->text);

	buf_add(seen, data, len);
	if (memmem(seen->data, seen->len, w->text, n))
		return true;
	if (seen->len >= n)
		buf_drop(seen, seen->len - (n - 1));
	return false;
}

static bool find(struct wait *w, int stream, const uint8_t *data, size_t len)
{
	if (w->pattern)
		return pattern_find(w->pattern, &w->look[stream], data, len);
	return w->text[0] && find_text(w, &w->seen[stream], data, len);
}

static bool find_at_end(struct wait *w)
{
	return w->pattern && (pattern_find_end(w->pattern, &w->look[0]) ||
			      pattern_find_end(w->pattern, &w->look[1]));
}

static bool on_output(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	struct wait *w = t->data;

	if (!find(w, type == FRAME_STDERR, data, len))
		return false;
	answer(w, true, "log");
	return true;
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct wait *w = t->data;

	(void)exit;
	(void)why; /* a journal has a record */
	if (find_at_end(w))
		return answer(w, true, "log");
	answer(w, !w->text[0] && !w->port, "ended");
}

static const struct tail_events sink = { .output = on_output, .finished = on_finished };

static void on_gone(struct request *rq)
{
	request_end(wait_close(rq->data), 499);
}

/* ---- a port ---- */

static void on_port_opened(void *data)
{
	struct wait *w = data;
	cleanup(buf_done) struct buf out = buf_make(64);

	writer_u32(&out, w->port_number);
	(void)init_link_send(w->port, FRAME_PORT, out.data, out.len);
}

static void on_port_frame(void *data, const struct frame *f)
{
	struct wait *w = data;
	struct err e;

	if (f->type == FRAME_PORT)
		return answer(w, true, "port");
	err_set(&e, ERR_INTERNAL, "the sandbox's init sent an unexpected frame");
	if (f->type == FRAME_ERROR)
		frame_guest_error(f, &e);
	request_fail(wait_close(w), &e);
}

static bool on_port_bytes(void *data, const uint8_t *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	(void)len;
	return false;
}

/* Its sandbox ended, then so did the exec, and the tail will say it; or it is busy. */
static void on_port_failed(void *data, const struct err *why)
{
	struct wait *w = data;

	w->port = NULL;
	request_fail(wait_close(w), why);
}

static const struct init_link_events port_events = { on_port_opened, on_port_frame, on_port_bytes,
						     NULL, on_port_failed };

static void ask_port(struct wait *w, uint64_t port)
{
	const char *sandbox = w->tail->journal->head.sandbox;
	struct init_dial_ask way = { w->rq->reactor, w->rq->id, NULL, sandbox, true };

	w->port_number = (uint32_t)port;
	w->port = init_link_new(w->rq->reactor, &port_events, w);
	init_link_open(w->port, &way);
}

/* ---- what is asked ---- */

/* A text, or an expression between slashes. */
static int read_text(struct wait *w, const char *text, struct err *e)
{
	size_t len = strlen(text);
	bool fold = len > 3 && strcmp(text + len - 2, "/i") == 0;
	size_t end = len - (fold ? 2 : 1);

	if (len == 0)
		return err_set(e, ERR_INVALID, "for=log needs a pattern");
	memcpy(w->text, text, len + 1);
	if (len < 3 || text[0] != '/' || text[end] != '/')
		return 0;
	w->text[end] = '\0';
	w->pattern = xcalloc(1, sizeof(*w->pattern));
	return pattern_read(w->text + 1, fold, w->pattern, e);
}

struct ask {
	char what[16], text[TEXT_MAX], port[16], timeout[24];
	uint64_t port_n, timeout_ms;
};

static int bad_port(struct err *e)
{
	err_set(e, ERR_INVALID, "for=port needs a port from 1 to 65535");
	return err_reason(e, REASON_INVALID_PORT, 0);
}

static int read_query(const char *query, struct ask *a, struct err *e)
{
	bool found;

	if (http_query(query, "for", a->what, sizeof(a->what), &found, e) < 0 ||
	    http_query(query, "pattern", a->text, sizeof(a->text), &found, e) < 0 ||
	    http_query(query, "port", a->port, sizeof(a->port), &found, e) < 0 ||
	    (found && str_u64(a->port, &a->port_n, e) < 0) ||
	    http_query(query, "timeout_ms", a->timeout, sizeof(a->timeout), &found, e) < 0)
		return -1;
	a->timeout_ms = WAIT_MS;
	if (found && str_u64(a->timeout, &a->timeout_ms, e) < 0)
		return -1;
	if (a->timeout_ms > WAIT_MAX_MS)
		return err_set(e, ERR_INVALID, "timeout_ms must be 0 to %d", WAIT_MAX_MS);
	if (!a->what[0])
		memcpy(a->what, "exit", 5);
	if (strcmp(a->what, "port") == 0 && (a->port_n < 1 || a->port_n > 65535))
		return bad_port(e);
	if (strcmp(a->what, "port") != 0 && strcmp(a->what, "exit") != 0 &&
	    strcmp(a->what, "log") != 0)
		return err_set(e, ERR_INVALID, "for must be exit, log or port");
	return 0;
}

void execs_wait(struct request *rq)
{
	struct wait *w = xcalloc(1, sizeof(*w));
	struct ask a = { 0 };
	struct journal *j;
	struct err e;

	w->rq = rq;
	if (read_query(rq->x ? rq->x->query : "", &a, &e) < 0 ||
	    (strcmp(a.what, "log") == 0 && read_text(w, a.text, &e) < 0) ||
	    execs_find(rq, &j, &e) < 0) {
		wait_free(w);
		return request_fail(rq, &e);
	}
	w->seen[0] = buf_make(FRAME_PAYLOAD_MAX + TEXT_MAX);
	w->seen[1] = buf_make(FRAME_PAYLOAD_MAX + TEXT_MAX);
	uv_timer_init(&rq->reactor->loop, &w->timer);
	w->timer.data = w;
	uv_timer_start(&w->timer, on_time_out, a.timeout_ms, 0);
	rq->data = w;
	rq->on_gone = on_gone;
	w->tail = tail_new(rq->reactor, &sink, w);
	tail_follow(w->tail, j, w->text[0] ? 0 : UINT64_MAX);
	journal_unref(j);
	if (a.port_n > 0 && strcmp(a.what, "port") == 0)
		ask_port(w, a.port_n);
}

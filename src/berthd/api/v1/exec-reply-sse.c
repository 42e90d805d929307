/* What happens as it happens: events started, stdout, stderr, gap, and last exit or error. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/exec-replies.h"
#include "berthd/api/v1/execs.h"
#include "berthd/front/request.h"
#include "lib/json.h"
#include "lib/loop.h"
#include "lib/str.h"

#define PIECE_MAX ((size_t)32 * 1024) /* a connection that breaks often must still get on */
#define SILENT_MS 15000               /* then a comment says that we are still there */

/*
 * Bytes that are text go as text. A character that is cut at the end of a piece
 * waits for the next one of its stream; anything else that is not UTF-8 goes as
 * base64. The id of an event is the position behind everything sent so far, so
 * that nothing is missed from there on.
 */
struct events {
	struct request *rq;
	struct tail *tail;
	struct exec_input input;
	uv_timer_t silence;
	bool begun; /* the stream is open */
	bool again; /* it is a replay: no word of its start */
	bool follow;
	int only;
	uint64_t position; /* behind what was sent */
	struct {
		uint8_t bytes[4];
		size_t len;
		int which;
		uint64_t offset;
	} cut;
};

static void on_timer_closed(uv_handle_t *handle)
{
	struct events *ev = container_of(handle, struct events, silence);

	exec_input_done(&ev->input);
	free(ev);
}

static void events_close(struct events *ev, int status)
{
	request_end(ev->rq, status);
	uv_close((uv_handle_t *)&ev->silence, on_timer_closed);
}

static void on_silence(uv_timer_t *timer)
{
	struct events *ev = container_of(timer, struct events, silence);

	if (ev->rq->x && ev->begun)
		(void)http_stream_data(ev->rq->x, ": \n\n", 4);
}

static void open_stream(struct events *ev)
{
	if (ev->begun)
		return;
	ev->begun = true;
	request_stream(ev->rq);
	uv_timer_start(&ev->silence, on_silence, SILENT_MS, SILENT_MS);
}

static bool send_event(struct events *ev, const char *name, const struct buf *json)
{
	char id[32];

	snprintf(id, sizeof(id), "%" PRIu64, ev->position);
	uv_timer_again(&ev->silence);
	return request_event_at(ev->rq, name, id, json);
}

static void on_started(struct tail *t, uint32_t pid)
{
	struct events *ev = t->data;
	cleanup(buf_done) struct buf json = buf_make(256);

	open_stream(ev);
	if (ev->again)
		return;
	json_open(&json, '{');
	json_str(&json, "id", t->journal->head.ask.id);
	json_int(&json, "pid", pid);
	buf_adds(&json, "}");
	(void)send_event(ev, "started", &json);
	exec_input_send(&ev->input, t->exec);
}

static bool send_piece(struct events *ev, int which, uint64_t offset, const uint8_t *data,
		       size_t len, bool text)
{
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);

	json_open(&json, '{');
	json_int(&json, "position", (int64_t)ev->position);
	json_int(&json, "offset", (int64_t)offset);
	json_key(&json, text ? "data" : "data_base64");
	if (text) {
		json_add_text(&json, (const char *)data, len);
	} else {
		buf_adds(&json, "\"");
		base64_add(&json, data, len);
		buf_adds(&json, "\"");
	}
	buf_adds(&json, "}");
	ev->position += len;
	return send_event(ev, which ? "stderr" : "stdout", &json);
}

static bool send_cut(struct events *ev)
{
	size_t len = ev->cut.len;

	ev->cut.len = 0;
	return len > 0 &&
	       send_piece(ev, ev->cut.which, ev->cut.offset, ev->cut.bytes, len, false);
}

/* Text as far as it is text, the rest as it is; a cut character is kept back. */
static bool send_bytes(struct events *ev, int which, uint64_t offset, const uint8_t *data,
		       size_t len)
{
	size_t valid = utf8_valid_prefix(data, len);
	bool full = false;

	if (valid == len)
		return send_piece(ev, which, offset, data, len, true);
	if (!utf8_is_cut(data + valid, len - valid))
		return send_piece(ev, which, offset, data, len, false);
	if (valid > 0)
		full = send_piece(ev, which, offset, data, valid, true);
	memcpy(ev->cut.bytes, data + valid, len - valid);
	ev->cut.len = len - valid;
	ev->cut.which = which;
	ev->cut.offset = offset + valid;
	return full;
}

/* Together with the beginning of a character that waited, if there is one. */
static bool send_joined(struct events *ev, int which, uint64_t offset, const uint8_t *data,
			size_t len)
{
	cleanup(buf_done) struct buf joined = buf_make(PIECE_MAX + 8);

	if (ev->cut.len == 0)
		return send_bytes(ev, which, offset, data, len);
	offset = ev->cut.offset;
	buf_add(&joined, ev->cut.bytes, ev->cut.len);
	buf_add(&joined, data, len);
	ev->cut.len = 0;
	return send_bytes(ev, which, offset, (const uint8_t *)joined.data, joined.len);
}

static bool on_output(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	struct events *ev = t->data;
	int which = type == FRAME_STDERR;
	bool full = false;

	if (ev->only && ev->only != (int)type)
		return false;
	if (ev->cut.len > 0 && ev->cut.which != which)
		full = send_cut(ev);
	ev->position = t->position - ev->cut.len;
	for (size_t at = 0; at < len; at += PIECE_MAX) {
		size_t n = len - at < PIECE_MAX ? len - at : PIECE_MAX;

		full = send_joined(ev, which, t->offset[which] + at, data + at, n) || full;
	}
	return full;
}

static void on_gap(struct tail *t, uint64_t bytes)
{
	struct events *ev = t->data;
	cleanup(buf_done) struct buf json = buf_make(256);

	(void)send_cut(ev);
	ev->position = t->position;
	json_open(&json, '{');
	json_int(&json, "position", (int64_t)ev->position);
	json_int(&json, "bytes", (int64_t)bytes);
	buf_adds(&json, "}");
	ev->position += bytes;
	(void)send_event(ev, "gap", &json);
}

static void end_stream(struct events *ev)
{
	tail_close(take_ptr(ev->tail));
	if (ev->rq->x)
		http_stream_end(take_ptr(ev->rq->x));
	events_close(ev, 200);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct events *ev = t->data;
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);

	if (why && !ev->begun) { /* nothing was sent yet: an ordinary error */
		struct request *rq = ev->rq;

		tail_close(t);
		uv_close((uv_handle_t *)&ev->silence, on_timer_closed);
		return request_fail(rq, why);
	}
	open_stream(ev);
	(void)send_cut(ev);
	if (why) {
		request_error_json(ev->rq, why, &json);
	} else {
		json_open(&json, '{');
		exec_exit_json(&json, t->journal, exit);
		buf_adds(&json, "}");
	}
	(void)send_event(ev, why ? "error" : "exit", &json);
	end_stream(ev);
}

static void on_idle(struct tail *t)
{
	struct events *ev = t->data;

	if (ev->follow)
		return;
	open_stream(ev);
	(void)send_cut(ev);
	end_stream(ev);
}

static const struct tail_events sink = { on_started, on_output, on_gap, on_idle, on_finished };

static void on_gone(struct request *rq)
{
	struct events *ev = rq->data;

	exec_abandon(ev->tail);
	tail_close(ev->tail);
	events_close(ev, 499);
}

static void on_drain(struct request *rq)
{
	struct events *ev = rq->data;

	tail_resume(ev->tail);
}

static struct events *events_new(struct request *rq)
{
	struct events *ev = xcalloc(1, sizeof(*ev));

	ev->rq = rq;
	ev->follow = true;
	ev->tail = tail_new(rq->reactor, &sink, ev);
	uv_timer_init(&rq->reactor->loop, &ev->silence);
	rq->data = ev;
	rq->on_gone = on_gone;
	rq->on_drain = on_drain;
	return ev;
}

void exec_events(struct request *rq, struct exec_ask *ask)
{
	struct events *ev = events_new(rq);

	ev->input = ask->input;
	ask->input = (struct exec_input){ 0 };
	exec_begin_for(rq, &ask->begin, ev->tail);
}

void exec_replay_events(struct request *rq, const struct exec_replay *r)
{
	struct events *ev = events_new(rq);

	ev->again = true;
	ev->only = r->only;
	ev->follow = r->follow;
	ev->position = r->from;
	open_stream(ev);
	tail_follow(ev->tail, r->journal, r->from);
}

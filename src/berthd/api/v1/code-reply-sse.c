/* The answer as it happens: started, stdout, stderr, result, error_output; last end or error. */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/code.h"
#include "berthd/front/request.h"
#include "lib/json.h"
#include "lib/str.h"

#define PIECE_MAX (32 * 1024) /* of output in one event */

/*
 * Bytes that are text go as text. A character that is cut at the end of a piece
 * waits for the next one; anything else that is not UTF-8 goes as base64.
 */
struct events {
	bool begun;
	struct {
		uint8_t held[4 + PIECE_MAX]; /* a cut character, and what comes behind it */
		size_t cut;
		uint64_t sent; /* offset of the next byte to be sent */
	} stream[2];
};

static void on_started(struct code_run *r)
{
	struct events *ev = r->data;
	cleanup(buf_done) struct buf json = buf_make(1024);

	json_open(&json, '{');
	json_str(&json, "context", r->context.id);
	json_str(&json, "language", r->context.language);
	json_int(&json, "run", r->run.number);
	buf_adds(&json, "}");
	ev->begun = true;
	request_stream(r->rq);
	(void)request_event(r->rq, "started", &json);
}

static bool send_piece(struct code_run *r, int which, const uint8_t *data, size_t len, bool text)
{
	struct events *ev = r->data;
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);

	json_open(&json, '{');
	json_int(&json, "offset", (int64_t)ev->stream[which].sent);
	json_key(&json, text ? "data" : "data_base64");
	if (text) {
		json_add_text(&json, (const char *)data, len);
	} else {
		buf_adds(&json, "\"");
		base64_add(&json, data, len);
		buf_adds(&json, "\"");
	}
	buf_adds(&json, "}");
	ev->stream[which].sent += len;
	return request_event(r->rq, which ? "stderr" : "stdout", &json);
}

/* Text as far as it is text, the rest as it is; a cut character is kept back. */
static bool send_held(struct code_run *r, int which, size_t len)
{
	struct events *ev = r->data;
	uint8_t *held = ev->stream[which].held;
	size_t valid = utf8_valid_prefix(held, len);
	bool full = false;

	ev->stream[which].cut = 0;
	if (valid == len)
		return send_piece(r, which, held, len, true);
	if (!utf8_is_cut(held + valid, len - valid))
		return send_piece(r, which, held, len, false);
	if (valid > 0)
		full = send_piece(r, which, held, valid, true);
	memmove(held, held + valid, len - valid);
	ev->stream[which].cut = len - valid;
	return full;
}

static bool on_output(struct code_run *r, enum frame_type type, const uint8_t *data, size_t len)
{
	struct events *ev = r->data;
	int which = type == FRAME_STDERR;
	bool full = false;

	while (len > 0) {
		size_t n = len < PIECE_MAX ? len : PIECE_MAX;
		size_t cut = ev->stream[which].cut;

		memcpy(ev->stream[which].held + cut, data, n);
		full |= send_held(r, which, cut + n);
		data += n;
		len -= n;
	}
	return full;
}

static bool on_note(struct code_run *r, enum note_type type, const struct buf *json)
{
	return request_event(r->rq, type == NOTE_ERROR ? "error_output" : "result", json);
}

static void end_with(struct code_run *r, const char *name, const struct buf *json)
{
	struct request *rq = r->rq;

	free(r->data);
	(void)request_event(rq, name, json);
	if (rq->x)
		http_stream_end(take_ptr(rq->x));
	request_end(rq, 200);
}

static void on_finished(struct code_run *r, const struct err *why)
{
	struct events *ev = r->data;
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);

	if (why && !ev->begun) { /* nothing was sent yet: an ordinary error */
		struct request *rq = r->rq;

		free(ev);
		return request_fail(rq, why);
	}
	for (int i = 0; i < 2; i++)
		if (ev->stream[i].cut > 0)
			(void)send_piece(r, i, ev->stream[i].held, ev->stream[i].cut, false);
	if (!ev->begun) /* lost before it was started */
		request_stream(r->rq);
	if (why) {
		request_error_json(r->rq, why, &json);
		return end_with(r, "error", &json);
	}
	json_open(&json, '{');
	code_end_json(&json, r);
	json_key(&json, "error");
	buf_adds(&json, r->error.len > 0 ? buf_str(&r->error) : "null");
	buf_adds(&json, "}");
	end_with(r, "end", &json);
}

static const struct code_sink sink = { on_started, on_output, on_note, on_finished };

static void on_gone(struct request *rq)
{
	struct code_run *r = rq->data;

	free(r->data);
	code_cancel(r);
	request_end(rq, 499);
}

static void on_drain(struct request *rq)
{
	code_resume(rq->data);
}

void code_events(struct request *rq, struct code_ask *ask)
{
	rq->on_gone = on_gone;
	rq->on_drain = on_drain;
	code_run_for(rq, ask, &sink, xcalloc(1, sizeof(struct events)));
}

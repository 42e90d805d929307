/* The answer as it happens: events started, stdout, stderr, and last exit or error. */
#include <stdlib.h>
#include <string.h>

#include "api/exec/input.h"
#include "api/exec/sinks.h"
#include "lib/json.h"
#include "lib/str.h"

/*
 * Bytes that are text go as text. A character that is cut at the end of a piece
 * waits for the next one; anything else that is not UTF-8 goes as base64.
 */
struct events {
	struct exec_input input;
	bool begun; /* the stream is open */
	struct {
		uint8_t cut[4];
		size_t cut_len;
		uint64_t sent; /* offset of the next byte to be sent */
	} stream[2];
};

static void events_free(struct events *ev)
{
	exec_input_done(&ev->input);
	free(ev);
}

static void on_started(struct exec *x, uint32_t pid)
{
	struct events *ev = x->data;
	cleanup(buf_done) struct buf json = buf_make(256);

	json_open(&json, '{');
	json_int(&json, "pid", pid);
	buf_adds(&json, "}");
	ev->begun = true;
	request_stream(x->rq);
	(void)request_event(x->rq, "started", &json);
	exec_input_send(&ev->input, x);
}

static bool send_piece(struct exec *x, int which, const uint8_t *data, size_t len, bool text)
{
	struct events *ev = x->data;
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
	return request_event(x->rq, which ? "stderr" : "stdout", &json);
}

/* Text as far as it is text, the rest as it is; a cut character is kept back. */
static bool send_bytes(struct exec *x, int which, const uint8_t *data, size_t len)
{
	struct events *ev = x->data;
	size_t valid = utf8_valid_prefix(data, len);
	bool full = false;

	if (valid == len)
		return send_piece(x, which, data, len, true);
	if (!utf8_is_cut(data + valid, len - valid))
		return send_piece(x, which, data, len, false);
	if (valid > 0)
		full = send_piece(x, which, data, valid, true);
	memcpy(ev->stream[which].cut, data + valid, len - valid);
	ev->stream[which].cut_len = len - valid;
	return full;
}

static bool on_output(struct exec *x, enum frame_type type, uint8_t *data, size_t len)
{
	struct events *ev = x->data;
	int which = type == FRAME_STDERR;
	cleanup(buf_done) struct buf joined = buf_make(REPLY_MAX);

	if (ev->stream[which].cut_len == 0)
		return send_bytes(x, which, data, len);
	buf_add(&joined, ev->stream[which].cut, ev->stream[which].cut_len);
	buf_add(&joined, data, len);
	ev->stream[which].cut_len = 0;
	return send_bytes(x, which, (const uint8_t *)joined.data, joined.len);
}

static void end_with(struct exec *x, const char *name, const struct buf *json)
{
	struct request *rq = x->rq;

	events_free(x->data);
	(void)request_event(rq, name, json);
	if (rq->x)
		http_stream_end(take_ptr(rq->x));
	request_end(rq, 200);
}

static void on_finished(struct exec *x, const struct exec_exit *exit, const struct err *why)
{
	struct events *ev = x->data;
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);

	if (why && !ev->begun) { /* nothing was sent yet: an ordinary error */
		struct request *rq = x->rq;

		events_free(ev);
		return request_fail(rq, why);
	}
	for (int i = 0; i < 2; i++)
		if (ev->stream[i].cut_len > 0)
			(void)send_piece(x, i, ev->stream[i].cut, ev->stream[i].cut_len, false);
	if (!ev->begun) /* lost before it was started */
		request_stream(x->rq);
	if (why) {
		request_error_json(x->rq, why, &json);
		return end_with(x, "error", &json);
	}
	json_open(&json, '{');
	exec_exit_json(&json, x, exit);
	buf_adds(&json, "}");
	end_with(x, "exit", &json);
}

static const struct exec_sink sink = { on_started, on_output, on_finished };

static void on_gone(struct request *rq)
{
	struct exec *x = rq->data;

	events_free(x->data);
	exec_cancel(x);
	request_end(rq, 499);
}

static void on_drain(struct request *rq)
{
	exec_resume(rq->data);
}

void exec_events(struct request *rq, struct exec_request *ask, char *input)
{
	struct events *ev = xcalloc(1, sizeof(*ev));

	exec_input_init(&ev->input, input);
	rq->on_gone = on_gone;
	rq->on_drain = on_drain;
	(void)exec_begin(rq, rq->param, ask, &sink, ev);
}

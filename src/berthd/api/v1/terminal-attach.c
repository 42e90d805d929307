/*
 * A viewer of a terminal: a WebSocket. Binary messages are bytes both ways, text
 * messages are words about it.
 */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/terminals.h"
#include "berthd/exec/terminal.h"
#include "http/target.h"
#include "http/websocket.h"
#include "lib/json.h"
#include "lib/str.h"

#define PIECE_MAX (64UL * 1024) /* of output in one message */

struct viewer {
	struct request *rq;
	struct websocket *socket; /* NULL: closed */
	struct terminal_view *view;
	struct journal *journal;
	bool choked; /* it does not read our answers */
};

static void hang_up(struct viewer *v, enum ws_close code)
{
	if (v->socket)
		websocket_close(take_ptr(v->socket), code);
	terminal_view_close(v->view);
	journal_unref(v->journal);
	request_end(v->rq, 101);
	free(v);
}

static bool say(struct viewer *v, const struct buf *json)
{
	return v->socket && websocket_send(v->socket, true, json->data, json->len);
}

static void say_wrong(struct viewer *v, const struct err *why)
{
	cleanup(buf_done) struct buf json = buf_make(4096);

	json_open(&json, '{');
	json_str(&json, "type", "error");
	json_str(&json, "message", why->msg);
	buf_adds(&json, "}");
	v->choked = say(v, &json);
	if (v->choked)
		websocket_pause(v->socket); /* no more is read until the refusal is sent */
}

/* ---- from the terminal ---- */

static bool on_output(void *data, const uint8_t *bytes, size_t len)
{
	struct viewer *v = data;
	bool full = false;

	for (size_t at = 0; at < len; at += PIECE_MAX)
		full = websocket_send(v->socket, false, bytes + at,
				      len - at < PIECE_MAX ? len - at : PIECE_MAX);
	return full;
}

static void on_gap(void *data, uint64_t position, uint64_t bytes)
{
	cleanup(buf_done) struct buf json = buf_make(256);

	json_open(&json, '{');
	json_str(&json, "type", "gap");
	json_int(&json, "position", (int64_t)position);
	json_int(&json, "bytes", (int64_t)bytes);
	buf_adds(&json, "}");
	(void)say(data, &json);
}

static void on_finished(void *data, const struct exec_exit *exit, const struct err *why)
{
	struct viewer *v = data;
	cleanup(buf_done) struct buf json = buf_make(16384);

	if (why) {
		say_wrong(v, why);
		return hang_up(v, WS_CLOSE_FAILED);
	}
	json_open(&json, '{');
	json_str(&json, "type", "exit");
	exec_exit_json(&json, v->journal, exit);
	buf_adds(&json, "}");
	(void)say(v, &json);
	hang_up(v, WS_CLOSE_NORMAL);
}

/* ---- from the viewer ---- */

static void read_on(void *data)
{
	struct viewer *v = data;

	if (!v->choked && !terminal_view_is_waiting(v->view))
		websocket_resume(v->socket);
}

static const struct terminal_sink sink = {
	.output = on_output,
	.gap = on_gap,
	.room = read_on,
	.finished = on_finished,
};

struct word {
	char type[16];
	int64_t cols, rows;
};

static const struct json_field word_fields[] = {
	JSON_FIELD_STR(word, type, .required = true),
	JSON_FIELD_INT(word, cols),
	JSON_FIELD_INT(word, rows),
	JSON_FIELD_END
};

static int take_word(const char *text, size_t len, struct exec_size *ret, struct err *e)
{
	struct word w = { 0 };

	if (json_read(text, len, word_fields, &w, e) < 0)
		return -1;
	if (strcmp(w.type, "resize") != 0)
		return err_set(e, ERR_INVALID, "a terminal knows \"resize\", not \"%s\"", w.type);
	return terminal_size(w.cols, w.rows, ret, e);
}

static void on_message(void *data, bool text, const char *bytes, size_t len)
{
	struct viewer *v = data;
	struct exec_size size;
	bool full = false;
	struct err e;

	if (text && take_word(bytes, len, &size, &e) < 0)
		return say_wrong(v, &e);
	if (text)
		full = terminal_view_resize(v->view, &size);
	else if (len > 0)
		full = terminal_view_input(v->view,
					   (struct bytes){ (const uint8_t *)bytes, len });
	if (full)
		websocket_pause(v->socket);
}

static void on_drain(void *data)
{
	struct viewer *v = data;

	v->choked = false;
	terminal_view_resume(v->view);
	read_on(v);
}

static void on_gone(void *data)
{
	struct viewer *v = data;

	v->socket = NULL;
	hang_up(v, WS_CLOSE_NORMAL);
}

static const struct websocket_events socket_events = { on_message, on_drain, on_gone };

/* ---- the beginning ---- */

static void say_attached(struct viewer *v, uint64_t from)
{
	cleanup(buf_done) struct buf json = buf_make(256);
	struct journal_view view;

	journal_look(v->journal, &view);
	json_open(&json, '{');
	json_str(&json, "type", "attached");
	json_int(&json, "position", (int64_t)from);
	json_int(&json, "end", (int64_t)journal_view_end(&view));
	buf_adds(&json, "}");
	(void)say(v, &json);
}

static int read_from(const struct request *rq, uint64_t *ret, struct err *e)
{
	char from[24];
	bool given;

	*ret = 0;
	if (http_query(rq->query, "from", from, sizeof(from), &given, e) < 0)
		return -1;
	return given ? str_u64(from, ret, e) : 0;
}

static int find(const struct request *rq, uint64_t *from, struct journal **ret, struct err *e)
{
	if (websocket_check(rq->x, e) < 0 || terminals_find(rq, ret, e) < 0)
		return -1;
	if (read_from(rq, from, e) == 0)
		return 0;
	journal_unref(*ret);
	return -1;
}

void terminals_attach(struct request *rq)
{
	struct terminal_view *view;
	struct viewer *v;
	struct journal *j;
	uint64_t from;
	struct err e;

	if (find(rq, &from, &j, &e) < 0)
		return request_fail(rq, &e);
	if (terminal_view(rq->reactor, j, from, &view, &e) < 0) {
		journal_unref(j);
		return request_fail(rq, &e);
	}
	v = xcalloc(1, sizeof(*v));
	*v = (struct viewer){ .rq = rq, .view = view, .journal = j };
	rq->on_gone = NULL;
	v->socket = websocket_accept(take_ptr(rq->x), &socket_events, v);
	say_attached(v, from);
	terminal_view_follow(view, &sink, v);
}

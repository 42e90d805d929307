/*
 * A viewer of a terminal: a WebSocket. Binary messages are bytes both ways, text
 * messages are words about it. A slow viewer reads the journal more slowly, and no
 * other viewer notices.
 */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/terminals.h"
#include "berthd/exec/exec.h"
#include "berthd/exec/mailbox.h"
#include "http/target.h"
#include "http/websocket.h"
#include "lib/json.h"
#include "lib/str.h"

#define PIECE_MAX     (64UL * 1024) /* of output in one message */
#define VIEWERS_MAX   64            /* of one terminal */

/* What of one viewer may be on its way to a command that does not read. */
#define TELLING_MAX   16
#define TELLING_BYTES (64UL * 1024)

struct viewer {
	struct request *rq;
	struct websocket *socket; /* NULL: closed */
	struct tail *tail;        /* NULL: it has ended */
	struct journal *journal;
	unsigned telling;     /* words on their way to the command, */
	size_t telling_bytes; /* with so many bytes since there were none */
	bool choked;          /* it does not read our answers */
};

static void viewer_free(struct viewer *v)
{
	if (v->socket || v->tail || v->telling > 0)
		return; /* one of these will still call us back */
	atomic_fetch_sub(&v->journal->viewers, 1);
	journal_unref(v->journal);
	request_end(v->rq, 101);
	free(v);
}

static void stop_listening(struct viewer *v)
{
	if (v->tail)
		tail_close(take_ptr(v->tail));
}

static void hang_up(struct viewer *v, enum ws_close code)
{
	if (v->socket)
		websocket_close(take_ptr(v->socket), code);
	if (v->telling > 0)
		mail_drop(v->rq->reactor, v->journal, v);
	stop_listening(v);
	viewer_free(v);
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

static bool on_output(struct tail *t, enum frame_type stream, uint8_t *data, size_t len)
{
	struct viewer *v = t->data;
	bool full = false;

	(void)stream;
	for (size_t at = 0; v->socket && at < len; at += PIECE_MAX)
		full = websocket_send(v->socket, false, data + at,
				      len - at < PIECE_MAX ? len - at : PIECE_MAX);
	return full;
}

static void on_gap(struct tail *t, uint64_t bytes)
{
	cleanup(buf_done) struct buf json = buf_make(256);

	json_open(&json, '{');
	json_str(&json, "type", "gap");
	json_int(&json, "position", (int64_t)t->position);
	json_int(&json, "bytes", (int64_t)bytes);
	buf_adds(&json, "}");
	(void)say(t->data, &json);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct viewer *v = t->data;
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

static const struct tail_events tail_events = {
	.output = on_output,
	.gap = on_gap,
	.finished = on_finished,
};

/* ---- from the viewer ---- */

static void read_on(struct viewer *v)
{
	if (v->socket && v->telling == 0 && !v->choked)
		websocket_resume(v->socket);
}

/* It takes no more keys than the command does; what a viewer that stays has sent is not lost. */
static void on_told(void *data, const struct err *why)
{
	struct viewer *v = data;

	(void)why; /* if it has ended, the tail says so */
	v->telling--;
	if (v->telling == 0)
		v->telling_bytes = 0;
	read_on(v);
	viewer_free(v);
}

static void count(struct viewer *v, size_t bytes)
{
	v->telling++;
	v->telling_bytes += bytes;
	if (v->telling >= TELLING_MAX || v->telling_bytes >= TELLING_BYTES)
		websocket_pause(v->socket);
}

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

static int take_word(struct viewer *v, const char *text, size_t len, struct err *e)
{
	struct word w = { 0 };
	struct exec_size size;

	if (json_read(text, len, word_fields, &w, e) < 0)
		return -1;
	if (strcmp(w.type, "resize") != 0)
		return err_set(e, ERR_INVALID, "a terminal knows \"resize\", not \"%s\"", w.type);
	size = (struct exec_size){ (uint16_t)(w.cols < 0 || w.cols > UINT16_MAX ? 0 : w.cols),
				   (uint16_t)(w.rows < 0 || w.rows > UINT16_MAX ? 0 : w.rows) };
	if (exec_size_check(&size, e) < 0)
		return -1;
	journal_resize(v->journal, &size);
	count(v, sizeof(size));
	mail_size(v->rq->reactor, v->journal, &size, on_told, v);
	return 0;
}

static void on_message(void *data, bool text, const char *bytes, size_t len)
{
	struct viewer *v = data;
	struct err e;

	if (!text && len > 0) {
		count(v, len);
		mail_keys(v->rq->reactor, v->journal,
			  (struct bytes){ (const uint8_t *)bytes, len }, on_told, v);
	} else if (text && take_word(v, bytes, len, &e) < 0) {
		say_wrong(v, &e);
	}
}

static void on_drain(void *data)
{
	struct viewer *v = data;

	v->choked = false;
	read_on(v);
	if (v->tail)
		tail_resume(v->tail);
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

static int read_from(const struct request *rq, struct journal *j, uint64_t *ret, struct err *e)
{
	struct journal_view view;
	char from[24];
	bool given;

	*ret = 0;
	if (http_query(rq->query, "from", from, sizeof(from), &given, e) < 0 ||
	    (given && str_u64(from, ret, e) < 0))
		return -1;
	journal_look(j, &view);
	if (*ret > journal_view_end(&view))
		return err_set(e, ERR_INVALID, "terminal %s has said no more than %llu bytes",
			       rq->sub, (unsigned long long)journal_view_end(&view));
	return 0;
}

void terminals_attach(struct request *rq)
{
	struct viewer *v;
	struct journal *j;
	uint64_t from;
	struct err e;

	if (websocket_check(rq->x, &e) < 0 || terminals_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	if (read_from(rq, j, &from, &e) < 0) {
		journal_unref(j);
		return request_fail(rq, &e);
	}
	if (atomic_fetch_add(&j->viewers, 1) >= VIEWERS_MAX) {
		atomic_fetch_sub(&j->viewers, 1);
		journal_unref(j);
		err_set(&e, ERR_LIMIT, "terminal %s has %d viewers already", rq->sub, VIEWERS_MAX);
		err_fix(&e, "Detach one of them first.");
		return request_fail(rq, &e);
	}
	v = xcalloc(1, sizeof(*v));
	v->rq = rq;
	v->journal = j;
	v->tail = tail_new(rq->reactor, &tail_events, v);
	rq->on_gone = NULL;
	v->socket = websocket_accept(take_ptr(rq->x), &socket_events, v);
	say_attached(v, from);
	tail_follow(v->tail, j, from);
}

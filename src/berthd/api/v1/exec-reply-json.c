/* The answer in one piece: {"kind":…,"exit_code":…,"stdout":…,"stderr":…} */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/exec-replies.h"
#include "berthd/api/v1/execs.h"
#include "berthd/front/request.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"

#define OUTPUT_MAX (4 * 1024 * 1024)     /* of each stream; the rest is counted, not kept */
#define HELD_MAX   (256UL * 1024 * 1024) /* of all answers under way: then the same is done */

struct whole {
	struct request *rq;
	struct tail *tail;
	struct exec_input input;
	struct buf out[2];
};

/* The request is the caller's to answer. */
static struct request *whole_free(struct whole *w)
{
	struct request *rq = w->rq;

	rq->reactor->berthd->exec_held -= w->out[0].len + w->out[1].len;
	tail_close(w->tail);
	exec_input_done(&w->input);
	buf_done(&w->out[0]);
	buf_done(&w->out[1]);
	free(w);
	return rq;
}

static void on_started(struct tail *t, uint32_t pid)
{
	struct whole *w = t->data;

	(void)pid;
	exec_input_send(&w->input, t->exec);
}

static bool on_output(struct tail *t, enum frame_type stream, uint8_t *data, size_t len)
{
	struct whole *w = t->data;
	int which = stream == FRAME_STDERR;
	struct buf *out = &w->out[which];
	size_t room = OUTPUT_MAX - out->len;
	size_t keep = len < room ? len : room;

	/* What is kept is the beginning, without holes. */
	if (out->len < t->offset[which] || w->rq->reactor->berthd->exec_held + keep > HELD_MAX)
		return false;
	w->rq->reactor->berthd->exec_held += keep;
	buf_add(out, data, keep);
	return false;
}

void exec_stream_json(struct buf *json, const char *name, const struct buf *out, bool cut)
{
	char key[32];
	size_t whole = utf8_valid_prefix(buf_str(out), out->len);

	/* A character cut by our own limit is no reason to call it binary. */
	if (whole == out->len || (cut && utf8_is_cut(out->data + whole, out->len - whole))) {
		json_key(json, name);
		json_add_text(json, buf_str(out), whole);
	} else {
		snprintf(key, sizeof(key), "%s_base64", name);
		json_key(json, key);
		buf_adds(json, "\"");
		base64_add(json, out->data, out->len);
		buf_adds(json, "\"");
	}
}

static void add_stream(struct buf *json, const char *name, const struct buf *out, uint64_t bytes)
{
	char key[32];

	exec_stream_json(json, name, out, bytes > out->len);
	if (bytes > out->len) {
		snprintf(key, sizeof(key), "%s_truncated", name);
		json_bool(json, key, true);
	}
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct whole *w = t->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct journal_view v;

	if (why)
		return request_fail(whole_free(w), why);
	journal_look(t->journal, &v);
	json_open(&body, '{');
	exec_exit_json(&body, t->journal, exit);
	add_stream(&body, "stdout", &w->out[0], v.slot.offset[0]);
	add_stream(&body, "stderr", &w->out[1], v.slot.offset[1]);
	buf_adds(&body, "}");
	request_reply(whole_free(w), 200, &body);
}

/* Of a gap the counts in the record tell. */
static const struct tail_events sink = {
	.started = on_started,
	.output = on_output,
	.finished = on_finished,
};

static void on_gone(struct request *rq)
{
	struct whole *w = rq->data;

	exec_abandon(w->tail);
	request_end(whole_free(w), 499);
}

void exec_json(struct request *rq, struct exec_ask *ask)
{
	struct whole *w = xcalloc(1, sizeof(*w));

	w->rq = rq;
	w->tail = tail_new(rq->reactor, &sink, w);
	w->input = ask->input;
	ask->input = (struct exec_input){ 0 };
	w->out[0] = buf_make(OUTPUT_MAX + 1);
	w->out[1] = buf_make(OUTPUT_MAX + 1);
	rq->data = w;
	rq->on_gone = on_gone;
	exec_begin_for(rq, &ask->begin, w->tail);
}

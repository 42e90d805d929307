/* The answer in one piece: {"kind":…,"exit_code":…,"stdout":…,"stderr":…} */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/berthd.h"
#include "api/exec/input.h"
#include "api/exec/sinks.h"
#include "lib/json.h"
#include "lib/str.h"

#define OUTPUT_MAX (4 * 1024 * 1024)     /* of each stream; the rest is counted, not kept */
#define HELD_MAX   (256UL * 1024 * 1024) /* of all answers under way: then the same is done */

struct whole {
	struct berthd *berthd;
	struct exec_input input;
	struct buf out[2];
};

static void whole_free(struct whole *w)
{
	w->berthd->exec_held -= w->out[0].len + w->out[1].len;
	exec_input_done(&w->input);
	buf_done(&w->out[0]);
	buf_done(&w->out[1]);
	free(w);
}

static void on_started(struct exec *x, uint32_t pid)
{
	struct whole *w = x->data;

	(void)pid;
	exec_input_send(&w->input, x);
}

static bool on_output(struct exec *x, enum frame_type stream, uint8_t *data, size_t len)
{
	struct whole *w = x->data;
	int which = stream == FRAME_STDERR;
	struct buf *out = &w->out[which];
	size_t room = OUTPUT_MAX - out->len;
	size_t keep = len < room ? len : room;

	/* What is kept is the beginning, without holes. */
	if (out->len < x->offset[which] || w->berthd->exec_held + keep > HELD_MAX)
		return false;
	w->berthd->exec_held += keep;
	buf_add(out, data, keep);
	return false;
}

static void add_stream(struct buf *json, const char *name, const struct buf *out, uint64_t bytes)
{
	char key[32];
	size_t whole = utf8_valid_prefix(buf_str(out), out->len);

	/* A character cut by our own limit is no reason to call it binary. */
	if (whole == out->len ||
	    (bytes > out->len && utf8_is_cut(out->data + whole, out->len - whole))) {
		json_key(json, name);
		json_add_text(json, buf_str(out), whole);
	} else {
		snprintf(key, sizeof(key), "%s_base64", name);
		json_key(json, key);
		buf_adds(json, "\"");
		base64_add(json, out->data, out->len);
		buf_adds(json, "\"");
		whole = out->len;
	}
	if (bytes > whole) {
		snprintf(key, sizeof(key), "%s_truncated", name);
		json_bool(json, key, true);
	}
}

static void on_finished(struct exec *x, const struct exec_exit *exit, const struct err *why)
{
	struct request *rq = x->rq;
	struct whole *w = x->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	if (why) {
		whole_free(w);
		return request_fail(rq, why);
	}
	json_open(&body, '{');
	exec_exit_json(&body, x, exit);
	add_stream(&body, "stdout", &w->out[0], x->offset[0]);
	add_stream(&body, "stderr", &w->out[1], x->offset[1]);
	buf_adds(&body, "}");
	whole_free(w);
	request_reply(rq, 200, &body);
}

static const struct exec_sink sink = { on_started, on_output, on_finished };

static void on_gone(struct request *rq)
{
	struct exec *x = rq->data;

	whole_free(x->data);
	exec_cancel(x);
	request_end(rq, 499);
}

void exec_json(struct request *rq, struct exec_request *ask, char *input)
{
	struct whole *w = xcalloc(1, sizeof(*w));

	w->berthd = rq->reactor->berthd;
	exec_input_init(&w->input, input);
	w->out[0] = buf_make(OUTPUT_MAX + 1);
	w->out[1] = buf_make(OUTPUT_MAX + 1);
	rq->on_gone = on_gone;
	(void)exec_begin(rq, rq->param, ask, &sink, w);
}

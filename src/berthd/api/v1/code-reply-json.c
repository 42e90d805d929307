/* The answer in one piece: {"kind":…,"stdout":…,"results":[…],"error":…} */
#include <stdio.h>
#include <stdlib.h>

#include "berthd/api/v1/code.h"
#include "berthd/front/request.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"

#define OUTPUT_MAX (4 * 1024 * 1024)     /* of each stream; the rest is counted, not kept */
#define HELD_MAX   (256UL * 1024 * 1024) /* of all answers under way: then the same is done */

struct whole {
	struct berthd *berthd;
	struct buf out[2];
	struct buf results;
};

static void whole_free(struct whole *w)
{
	w->berthd->exec_held -= w->out[0].len + w->out[1].len;
	buf_done(&w->out[0]);
	buf_done(&w->out[1]);
	buf_done(&w->results);
	free(w);
}

static void on_started(struct code_run *r)
{
	(void)r;
}

static bool on_output(struct code_run *r, enum frame_type stream, const uint8_t *data, size_t len)
{
	struct whole *w = r->data;
	int which = stream == FRAME_STDERR;
	struct buf *out = &w->out[which];
	size_t room = OUTPUT_MAX - out->len;
	size_t keep = len < room ? len : room;

	/* What is kept is the beginning, without holes. */
	if (out->len < r->offset[which] || w->berthd->exec_held + keep > HELD_MAX)
		return false;
	w->berthd->exec_held += keep;
	buf_add(out, data, keep);
	return false;
}

static bool on_note(struct code_run *r, enum note_type type, const struct buf *json)
{
	struct whole *w = r->data;

	if (type != NOTE_RESULT)
		return false; /* the run keeps it */
	if (w->results.len > 0)
		buf_adds(&w->results, ",");
	buf_add(&w->results, json->data, json->len);
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

static void on_finished(struct code_run *r, const struct err *why)
{
	struct request *rq = r->rq;
	struct whole *w = r->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	if (why) {
		whole_free(w);
		return request_fail(rq, why);
	}
	json_open(&body, '{');
	code_end_json(&body, r);
	add_stream(&body, "stdout", &w->out[0], r->offset[0]);
	add_stream(&body, "stderr", &w->out[1], r->offset[1]);
	json_key(&body, "results");
	buf_adds(&body, "[");
	buf_add(&body, buf_str(&w->results), w->results.len);
	buf_adds(&body, "]");
	json_key(&body, "error");
	buf_adds(&body, r->error.len > 0 ? buf_str(&r->error) : "null");
	buf_adds(&body, "}");
	whole_free(w);
	request_reply(rq, 200, &body);
}

static const struct code_sink sink = { on_started, on_output, on_note, on_finished };

static void on_gone(struct request *rq)
{
	struct code_run *r = rq->data;

	whole_free(r->data);
	code_cancel(r);
	request_end(rq, 499);
}

void code_json(struct request *rq, struct code_ask *ask)
{
	struct whole *w = xcalloc(1, sizeof(*w));

	w->berthd = rq->reactor->berthd;
	w->out[0] = buf_make(OUTPUT_MAX + 1);
	w->out[1] = buf_make(OUTPUT_MAX + 1);
	w->results = buf_make(CODE_RESULTS_BYTES_MAX + CODE_RESULTS_MAX + 1);
	rq->on_gone = on_gone;
	code_run_for(rq, ask, &sink, w);
}

/* The answer in one piece: {"kind":…,"stdout":…,"results":[…],"error":…} */
#include <stdio.h>
#include <stdlib.h>

#include "berthd/api/v1/code.h"
#include "berthd/api/v1/kept-output.h"
#include "berthd/front/request.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"

struct whole {
	struct kept_output kept;
	struct buf results;
};

static void whole_free(struct whole *w)
{
	kept_output_done(&w->kept);
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

	kept_output_add(&w->kept, which, r->offset[which], data, len);
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
	kept_output_json(&body, &w->kept, r->offset);
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

	kept_output_init(&w->kept, rq->reactor->berthd, request_owner(rq));
	w->results = buf_make(CODE_RESULTS_BYTES_MAX + CODE_RESULTS_MAX + 1);
	rq->on_gone = on_gone;
	code_run_for(rq, ask, &sink, w);
}

/* The answer in one piece: {"kind":…,"exit_code":…,"stdout":…,"stderr":…} */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/exec-replies.h"
#include "berthd/api/v1/execs.h"
#include "berthd/api/v1/kept-output.h"
#include "berthd/front/request.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"

struct whole {
	struct request *rq;
	struct tail *tail;
	struct exec_input input;
	struct kept_output kept;
};

/* The request is the caller's to answer. */
static struct request *whole_free(struct whole *w)
{
	struct request *rq = w->rq;

	kept_output_done(&w->kept);
	tail_close(w->tail);
	exec_input_done(&w->input);
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

	kept_output_add(&w->kept, which, t->offset[which], data, len);
	return false;
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
	kept_output_json(&body, &w->kept, v.slot.offset);
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
	kept_output_init(&w->kept, rq->reactor->berthd, request_owner(rq));
	rq->data = w;
	rq->on_gone = on_gone;
	exec_begin_for(rq, &ask->begin, w->tail);
}

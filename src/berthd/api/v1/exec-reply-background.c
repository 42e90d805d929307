/* In the background: the answer is the exec itself, as soon as it runs. */
#include <stdlib.h>

#include "berthd/api/v1/exec-replies.h"
#include "berthd/api/v1/execs.h"

struct later {
	struct request *rq;
	struct tail *tail;
	struct exec_input input;
};

/* The request is the caller's to answer. */
static struct request *later_free(struct later *l)
{
	struct request *rq = l->rq;

	tail_close(l->tail);
	exec_input_done(&l->input);
	free(l);
	return rq;
}

static void answer(struct later *l)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	exec_record_json(&body, l->tail->journal);
	exec_abandon(l->tail);
	request_reply(later_free(l), 202, &body);
}

static void on_started(struct tail *t, uint32_t pid)
{
	struct later *l = t->data;

	(void)pid;
	exec_input_send(&l->input, t->exec);
	answer(l);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct later *l = t->data;

	(void)exit;
	if (why)
		return request_fail(later_free(l), why);
	answer(l); /* lost before it was known to run */
}

static const struct tail_events sink = { .started = on_started, .finished = on_finished };

static void on_gone(struct request *rq)
{
	struct later *l = rq->data;

	exec_abandon(l->tail);
	request_end(later_free(l), 499);
}

void exec_later(struct request *rq, struct exec_ask *ask)
{
	struct later *l = xcalloc(1, sizeof(*l));

	l->rq = rq;
	l->tail = tail_new(rq->reactor, &sink, l);
	l->input = ask->input;
	ask->input = (struct exec_input){ 0 };
	rq->data = l;
	rq->on_gone = on_gone;
	exec_begin_for(rq, &ask->begin, l->tail);
}

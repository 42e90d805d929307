#include "berthd/exec/kill.h"

#include <signal.h>
#include <stdlib.h>

#include "berthd/exec/mailbox.h"
#include "berthd/journal/tail.h"

#define SEEN_MS 30000 /* for a tree that was killed to be seen gone */

struct kill_op {
	struct reactor *reactor;
	struct journal *journal;
	uint32_t signum;   /* that was sent last */
	struct tail *tail; /* sees its end */
	uv_timer_t timer;
	struct kill_spec spec;
	bool sent, failed, over;
	int pending; /* the signal, and the timer's handle */
	struct err e;
	kill_done_fn done;
	void *data;
};

static void kill_op_unref(struct kill_op *k)
{
	if (--k->pending > 0)
		return;
	journal_unref(k->journal);
	free(k);
}

static void on_timer_closed(uv_handle_t *handle)
{
	kill_op_unref(handle->data);
}

/* It is decided: delivered, seen gone, or why not. */
static void kill_op_over(struct kill_op *k)
{
	if (k->over)
		return;
	k->over = true;
	tail_close(take_ptr(k->tail));
	uv_close((uv_handle_t *)&k->timer, on_timer_closed);
	k->done(k->data, k->failed ? &k->e : NULL);
}

static void on_delivered(void *data, const struct err *why)
{
	struct kill_op *k = data;
	bool wait = k->signum == SIGKILL || k->spec.grace_ms > 0;

	k->sent = false;
	/* ERR_CONFLICT: it has ended. The tail will say how; that is no failure. */
	if (!k->over && why && why->code != ERR_CONFLICT) {
		k->failed = true;
		k->e = *why;
		kill_op_over(k);
	} else if (!k->over && !wait) {
		kill_op_over(k);
	}
	kill_op_unref(k);
}

static void send_signal(struct kill_op *k, uint32_t signum)
{
	k->signum = signum;
	k->sent = true;
	k->pending++;
	mail_signal(k->reactor, k->journal, signum, on_delivered, k);
}

static void on_late(uv_timer_t *timer)
{
	struct kill_op *k = timer->data;

	k->failed = true;
	err_set(&k->e, ERR_TIMEOUT,
		k->sent ? "exec %s has not taken the signal yet: its sandbox does not answer"
			: "exec %s was sent the signal, but its end was not seen",
		k->journal->head.ask.id);
	kill_op_over(k);
}

static uint64_t seen_ms(const struct kill_op *k)
{
	return k->spec.seen_ms ? k->spec.seen_ms : SEEN_MS;
}

static void on_grace_over(uv_timer_t *timer)
{
	struct kill_op *k = timer->data;

	uv_timer_start(timer, on_late, seen_ms(k), 0);
	if (k->sent) /* the first has not come back: it does not wait for a second */
		return;
	send_signal(k, SIGKILL);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct kill_op *k = t->data;

	(void)exit;
	if (why) { /* it was never begun */
		k->failed = true;
		k->e = *why;
	}
	kill_op_over(k);
}

static const struct tail_events sink = { .finished = on_finished };

void exec_kill(struct reactor *r, struct journal *j, const struct kill_spec *spec,
	       kill_done_fn done, void *data)
{
	struct kill_op *k = xcalloc(1, sizeof(*k));

	k->reactor = r;
	k->journal = journal_ref(j);
	k->spec = *spec;
	k->done = done;
	k->data = data;
	k->pending = 1;
	uv_timer_init(&r->loop, &k->timer);
	k->timer.data = k;
	k->tail = tail_new(r, &sink, k);
	tail_follow(k->tail, j, UINT64_MAX);
	if (spec->grace_ms > 0)
		uv_timer_start(&k->timer, on_grace_over, spec->grace_ms, 0);
	else
		uv_timer_start(&k->timer, on_late, seen_ms(k), 0);
	send_signal(k, spec->signum);
}

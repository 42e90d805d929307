#include "berthd/exec/kill.h"

#include <signal.h>
#include <stdlib.h>

#include "berthd/exec/errand.h"
#include "berthd/journal/tail.h"

#define SEEN_MS 30000 /* for a tree that was killed to be seen gone */

/* One exec that is struck. */
struct victim {
	struct errand errand;
	struct tail *tail; /* sees its end */
	uv_timer_t timer;
	struct kill_spec blow;
	bool sent, failed, over;
	int pending; /* the errand, and the timer's handle */
	struct err e;
	kill_done_fn done;
	void *data;
};

static void victim_unref(struct victim *v)
{
	if (--v->pending > 0)
		return;
	journal_unref(v->errand.journal);
	free(v);
}

static void on_timer_closed(uv_handle_t *handle)
{
	victim_unref(handle->data);
}

/* It is decided: delivered, seen gone, or why not. */
static void victim_over(struct victim *v)
{
	if (v->over)
		return;
	v->over = true;
	tail_close(take_ptr(v->tail));
	uv_close((uv_handle_t *)&v->timer, on_timer_closed);
	v->done(v->data, v->failed ? &v->e : NULL);
}

static void strike(struct victim *v, uint32_t signum)
{
	v->errand.signum = signum;
	v->sent = true;
	v->pending++;
	errand_send(&v->errand);
}

static void on_late(uv_timer_t *timer)
{
	struct victim *v = timer->data;

	v->failed = true;
	err_set(&v->e, ERR_TIMEOUT,
		v->sent ? "exec %s has not taken the signal yet: its sandbox does not answer"
			: "exec %s was sent the signal, but its end was not seen",
		v->errand.journal->head.ask.id);
	victim_over(v);
}

static uint64_t seen_ms(const struct victim *v)
{
	return v->blow.seen_ms ? v->blow.seen_ms : SEEN_MS;
}

static void on_grace_over(uv_timer_t *timer)
{
	struct victim *v = timer->data;

	uv_timer_start(timer, on_late, seen_ms(v), 0);
	if (v->sent) /* the first has not come back: it does not wait for a second */
		return;
	strike(v, SIGKILL);
}

static void on_delivered(struct errand *errand, const struct err *why)
{
	struct victim *v = container_of(errand, struct victim, errand);
	bool wait = errand->signum == SIGKILL || v->blow.grace_ms > 0;

	v->sent = false;
	/* ERR_CONFLICT: it has ended. The tail will say how; that is no failure. */
	if (!v->over && why && why->code != ERR_CONFLICT) {
		v->failed = true;
		v->e = *why;
		victim_over(v);
	} else if (!v->over && !wait) {
		victim_over(v);
	}
	victim_unref(v);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct victim *v = t->data;

	(void)exit;
	(void)why; /* a journal has a record */
	victim_over(v);
}

static const struct tail_events sink = { .finished = on_finished };

void exec_kill(struct reactor *r, struct journal *j, const struct kill_spec *b,
	       kill_done_fn done, void *data)
{
	struct victim *v = xcalloc(1, sizeof(*v));

	v->errand = (struct errand){ .from = r, .journal = journal_ref(j), .done = on_delivered };
	v->blow = *b;
	v->done = done;
	v->data = data;
	v->pending = 1;
	uv_timer_init(&r->loop, &v->timer);
	v->timer.data = v;
	v->tail = tail_new(r, &sink, v);
	tail_follow(v->tail, j, UINT64_MAX);
	if (b->grace_ms > 0)
		uv_timer_start(&v->timer, on_grace_over, b->grace_ms, 0);
	else
		uv_timer_start(&v->timer, on_late, seen_ms(v), 0);
	strike(v, b->signum);
}

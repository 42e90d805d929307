#include "berthd/agent/lease-deadline.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/agent/lease-op.h"
#include "berthd/cluster/host-lease.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"

#define EVERY_MS 2000 /* divided like all times, but no more often than */
#define LEAST_MS 50
#define AT_ONCE  50

struct wrapper_alarm {
	struct reactor *reactor;
	uv_timer_t timer;
	struct job job;
	bool asking, asked;
	struct wrapper due[AT_ONCE];
	size_t count;
};

/*
 * What was said of its work is on this host even if the lease could not be written: then
 * one that is not busy, as far as the lease knows, works; and one that is busy does not.
 */
static bool is_working(const struct lease_operation *t)
{
	if (t->w.lease.state == LEASE_BUSY)
		return t->look.work != JOURNAL_WORK_SETTLED;
	return t->look.work == JOURNAL_WORK_ACCEPTED;
}

/* Of an instance: seen gone, or its time is up. One that works is looked at again later. */
static int decide_owned(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct lease_input gone = { .event = LEASE_OWNED_ABSENT, .instance = t->w.lease.instance };
	struct lease_input late = { .event = LEASE_TIMEOUT,
				    .working = is_working(t),
				    .silent_ms = t->look.silent_ms };

	if (lease_op_apply(t, t->look.seen.seen == WRAPPER_ABSENT ? &gone : &late, now, e) < 0)
		return -1;
	return t->action == LEASE_ACT_TRY ? lease_op_attempt(t, LEASE_BEGIN, now, e) : 1;
}

static int decide_due(struct lease_operation *t, const struct moment *now, struct err *e)
{
	enum lease_event due;

	if (!lease_due(&t->w.lease, &due) || lease_deadline_ms(&t->w.lease) > now->now_ms)
		return 0; /* another writer was faster */
	if (due == LEASE_TIMEOUT && t->w.lease.stop.state == STOP_NONE)
		return decide_owned(t, now, e);
	if (due == LEASE_TIMEOUT)
		return lease_op_apply(t, &(struct lease_input){ .event = due }, now, e);
	return lease_op_attempt(t, due, now, e);
}

/* The berthd that had begun the attempt is dead, and its answer with it. */
static int decide_lost(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct lease_input in = { .event = LEASE_UNKNOWN,
				  .attempt = t->w.lease.stop.attempt,
				  .text = "berthd ended during the attempt" };

	return t->w.lease.state == LEASE_STOPPING ? lease_op_apply(t, &in, now, e) : 0;
}

static void on_tended(struct lease_operation *t, const struct err *why)
{
	if (why)
		log_event(LOG_WARN, "wrapper deadline handling failed", "sandbox", t->w.sandbox,
			  "wrapper", t->w.name, "why", why->msg, NULL);
	lease_op_free(t);
}

/* An attempt has a deadline also while it is under way; all else waits for who is at it. */
static void tend_due(struct wrapper_alarm *a, const struct wrapper *w, bool first)
{
	struct lease_operation *t = lease_op_new(a->reactor, "alarm", NULL);

	lease_op_name(t, w->sandbox, w->name);
	if (w->lease.state == LEASE_STOPPING && !first)
		return lease_op_beside(t, decide_due, on_tended);
	if (!lease_op_try(t, w->lease.state == LEASE_STOPPING ? decide_lost : decide_due,
			  on_tended))
		lease_op_free(t);
}

static void add_due(const struct wrapper *w, void *arg)
{
	struct wrapper_alarm *a = arg;

	a->due[a->count++] = *w;
}

static int read_due(struct job *job, struct store *s, struct err *e)
{
	struct wrapper_alarm *a = container_of(job, struct wrapper_alarm, job);
	struct wrapper_boot now = lease_op_boot(a->reactor->berthd);
	struct wrapper_due due = { .boot = &now, .limit = AT_ONCE, .stopping = !a->asked };

	a->count = 0;
	return store_wrappers_due(s, &due, add_due, a, e);
}

static void on_due(struct job *job)
{
	struct wrapper_alarm *a = container_of(job, struct wrapper_alarm, job);
	bool first = !a->asked;

	crash_point("wrapper.due-read");
	a->asking = false;
	if (job->failed)
		return;                            /* the next tick asks again */
	a->asked = a->asked || a->count < AT_ONCE; /* of a full page the rest comes next */
	for (size_t i = 0; i < a->count; i++)
		tend_due(a, &a->due[i], first);
}

static void on_timer(uv_timer_t *timer)
{
	struct wrapper_alarm *a = timer->data;

	if (a->asking || !a->reactor->node.up || !lease_agent_runs(a->reactor->berthd->lease_agent))
		return;
	a->asking = true;
	job_submit(a->reactor, NULL, &a->job, read_due, on_due);
}

struct wrapper_alarm *wrapper_alarm_begin(struct reactor *r)
{
	struct wrapper_alarm *a = xcalloc(1, sizeof(*a));
	uint64_t every = EVERY_MS / r->berthd->settings.timer_divisor;

	if (every < LEAST_MS)
		every = LEAST_MS;
	a->reactor = r;
	uv_timer_init(&r->loop, &a->timer);
	a->timer.data = a;
	uv_timer_start(&a->timer, on_timer, every, every);
	return a;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void wrapper_alarm_end(struct wrapper_alarm *a)
{
	uv_close((uv_handle_t *)&a->timer, on_closed);
}

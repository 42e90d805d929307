#include "berthd/control/sweep-watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "berthd/control/reconcile.h"
#include "berthd/control/transition.h"
#include "berthd/runtime/berthd.h"
#include "lib/log.h"
#include "lib/str.h"
#include "store/sandbox.h"

#define LEAST_MS         1000
#define STALLED_LEAST_MS 20000 /* where times are divided two intervals are short */
#define COMPARE_LEAST_MS 5000

/* clang-format off */
static const struct {
	const char *kind, *todo, *over;
} kinds[SWEEP_ALERT_COUNT] = {
	[SWEEP_STALLED] = { "sweep_stalled", "see why berth-node or the database is slow",
		"sweeps come to an end again" },
	[SWEEP_BACKLOG] = { "cleanup_backlog", "see why berth-node or the database is slow",
		"what is due is cleaned up again" },
	[SWEEP_UNREADABLE] = { "record_unreadable", "mend the row, or restore it from a backup",
		"all records can be read again" },
};
/* clang-format on */

static struct sweep_watch *watch_of(const struct reactor *r)
{
	return r->berthd->sweep_watch;
}

static int write_alerts(struct job *job, struct store *s, struct err *e)
{
	struct sweep_watch *w = container_of(job, struct sweep_watch, job);
	uint64_t overdue = 0;

	if (store_sandboxes_overdue(s, job->reactor->berthd->settings.host, &overdue, e) < 0)
		return -1;
	w->overdue = overdue;
	for (int i = 0; i < SWEEP_ALERT_COUNT; i++) {
		const struct alert *a = &w->alerts[i].alert;

		if (!w->alerts[i].known)
			continue;
		if (w->alerts[i].raises && store_alert_raise(s, a, e) < 0)
			return -1;
		if (!w->alerts[i].raises && (!w->alerts[i].written || w->alerts[i].lasts) &&
		    store_alert_end(s, "", a->kind, a->subject, e) < 0)
			return -1;
	}
	return 0;
}

static void on_written(struct job *job)
{
	struct sweep_watch *w = container_of(job, struct sweep_watch, job);

	w->asking = false;
	if (job->failed) /* and is tried again; a database that is away is told by health */
		return;
	for (int i = 0; i < SWEEP_ALERT_COUNT; i++) {
		bool now = w->alerts[i].raises, was = w->alerts[i].lasts;

		if (!w->alerts[i].known)
			continue;
		w->alerts[i].written = true;
		w->alerts[i].lasts = now;
		if (now && !was)
			alert_tell(job->reactor->berthd, &w->alerts[i].alert, "", kinds[i].todo);
		if (!now && was)
			log_event(LOG_INFO, kinds[i].over, NULL);
	}
}

static void set(struct sweep_watch *w, const struct reactor *r, enum sweep_alert which,
		bool raises, const char *message)
{
	struct alert *a = &w->alerts[which].alert;
	const char *host = r->berthd->settings.host;

	*a = (struct alert){ 0 };
	(void)!str_copy(a->kind, sizeof(a->kind), kinds[which].kind);
	(void)!str_copy(a->host, sizeof(a->host), host);
	snprintf(a->subject, sizeof(a->subject), "%.63s", host); /* one for each host */
	snprintf(a->message, sizeof(a->message), "%s", message);
	w->alerts[which].raises = raises;
}

static void look_at_sweep(struct sweep_watch *w, const struct reactor *r, uint64_t now)
{
	struct reconcile_sweeps sweeps = reconcile_sweeps(r->berthd->reconcile);
	uint64_t most = 2 * sweeps.every_ms, since = now - sweeps.finished_ms;
	char message[SANDBOX_REASON_SIZE];

	if (most < STALLED_LEAST_MS)
		most = STALLED_LEAST_MS;
	snprintf(message, sizeof(message),
		 "no sweep has come to an end for %" PRIu64 " s; %" PRIu64 " were skipped because "
		 "the one before had not",
		 since / 1000, sweeps.skipped);
	set(w, r, SWEEP_STALLED, since > most, message);
	w->alerts[SWEEP_STALLED].known = since > most || sweeps.finished > 0;
}

/* A backlog lasts until it fits into one page. */
static void look_at_backlog(struct sweep_watch *w, const struct reactor *r, uint64_t now)
{
	uint64_t every = reconcile_sweeps(r->berthd->reconcile).every_ms, overdue = w->overdue;
	bool grows = w->alerts[SWEEP_BACKLOG].lasts && overdue > STORE_SWEEP_PAGE;
	char message[SANDBOX_REASON_SIZE];

	if (every < COMPARE_LEAST_MS)
		every = COMPARE_LEAST_MS;
	if (now - w->compared_ms >= every) {
		grows |= w->before > STORE_SWEEP_PAGE && overdue >= w->before;
		w->compared++;
		w->compared_ms = now;
		w->before = overdue;
	}
	snprintf(message, sizeof(message),
		 "%" PRIu64 " sandboxes are due, and it does not get less: cleaning up is late",
		 overdue);
	set(w, r, SWEEP_BACKLOG, grows, message);
	/* One that gets less is no news: what the berthd before this one wrote down lasts. */
	w->alerts[SWEEP_BACKLOG].known =
		w->compared > 0 && (grows || overdue <= STORE_SWEEP_PAGE);
}

static void look_at_records(struct sweep_watch *w, const struct reactor *r)
{
	struct reconcile_sweeps sweeps = reconcile_sweeps(r->berthd->reconcile);
	char message[SANDBOX_REASON_SIZE];

	snprintf(message, sizeof(message),
		 "%d records cannot be read, and nothing is done for their sandboxes: %.160s",
		 sweeps.unreadable, sweeps.unreadable_why.msg);
	message[utf8_valid_prefix(message, strlen(message))] = '\0'; /* it quotes the row */
	set(w, r, SWEEP_UNREADABLE, sweeps.unreadable > 0, message);
	w->alerts[SWEEP_UNREADABLE].known = sweeps.unreadable >= 0;
}

static void on_time(uv_timer_t *timer)
{
	struct reactor *r = timer->data;
	struct sweep_watch *w = watch_of(r);
	uint64_t now = uv_now(&r->loop);

	if (w->asking)
		return;
	w->asking = true;
	look_at_sweep(w, r, now);
	look_at_backlog(w, r, now);
	look_at_records(w, r);
	job_submit_background(r, &w->job, write_alerts, on_written);
}

uint64_t sweep_watch_overdue(const struct sweep_watch *w)
{
	return w->overdue;
}

void sweep_watch_begin(struct reactor *r)
{
	struct sweep_watch *w = watch_of(r);
	uint64_t every = reconcile_sweeps(r->berthd->reconcile).every_ms / 8;

	every = every < LEAST_MS ? LEAST_MS : every;
	w->compared_ms = uv_now(&r->loop);
	uv_timer_init(&r->loop, &w->timer);
	w->timer.data = r;
	uv_timer_start(&w->timer, on_time, every, every);
}

void sweep_watch_end(struct reactor *r)
{
	uv_close((uv_handle_t *)&watch_of(r)->timer, NULL);
}

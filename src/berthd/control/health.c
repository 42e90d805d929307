#include "berthd/control/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "berthd/control/reconcile.h"
#include "berthd/control/sweep-watch.h"
#include "lib/log.h"
#include "lib/time.h"

#define PROBE_MS   5000           /* a probe that failed is followed by the next at once */
#define RECENT_MS  (2 * PROBE_MS) /* a write that failed counts so long, whatever a probe says */
#define BUSY_MS    60000          /* so long probes may find a lock */
#define SKEW_MS    5000
#define FULL_BYTES (64UL << 10)
#define LOW_BYTES  (1UL << 30)
#define LOW_SHARE  20 /* and less than one part in so many */

/* ---- the disk of the journals ---- */

static void measure_disk(struct health *h, const struct berthd_settings *s)
{
	char path[sizeof(s->state_dir) + 16];
	struct statvfs v = { 0 };

	snprintf(path, sizeof(path), "%s/journal", s->state_dir);
	if (statvfs(path, &v) < 0)
		v = (struct statvfs){ 0 };
	pthread_mutex_lock(&h->lock);
	h->disk_free = (uint64_t)v.f_bavail * v.f_frsize;
	h->disk_total = (uint64_t)v.f_blocks * v.f_frsize;
	pthread_mutex_unlock(&h->lock);
}

static const char *disk_word(const struct health *h)
{
	if (!h->disk_total)
		return "unknown";
	if (h->disk_free < FULL_BYTES)
		return "full";
	return h->disk_free < LOW_BYTES && h->disk_free < h->disk_total / LOW_SHARE ? "low" : "ok";
}

/* ---- the database ---- */

static int probe(struct job *job, struct store *s, struct err *e)
{
	struct health *h = container_of(job, struct health, job);
	struct err ignored;

	measure_disk(h, &job->reactor->berthd->settings); /* a disk that hangs holds up no loop */
	h->busy = false;
	h->sent_ms = time_wall_ms();
	if (store_probe(s, job->reactor->berthd->settings.host, &h->now_ms, e) == 0)
		return 0;
	h->busy = e->code == ERR_BUSY && !store_is_unwritable(e) && store_ping(s, &ignored) == 0;
	return -1;
}

static void take_clock(struct health *h, uint64_t back_ms)
{
	uint64_t span = back_ms > h->sent_ms ? back_ms - h->sent_ms : 0;

	h->clock_skew_ms = (int64_t)(h->sent_ms + span / 2) - (int64_t)h->now_ms;
	h->clock_span_ms = span + 1;
}

static void on_probed(struct job *job)
{
	struct health *h = container_of(job, struct health, job);
	struct berthd *b = job->reactor->berthd;
	uint64_t now = time_wall_ms();
	struct err why = job->e;
	bool was, is, busy = job->failed && h->busy;

	h->probing = false;
	h->next_ms = job->failed ? 0 : time_mono_ms() + PROBE_MS;
	if (!busy)
		h->free_ms = time_mono_ms();
	/* A lock, or it is slow: for a while that says nothing of writes. */
	is = (job->failed && (!busy || time_mono_ms() - h->free_ms > BUSY_MS)) ||
	     workers_unwritable(&b->workers, RECENT_MS, &why);
	pthread_mutex_lock(&h->lock);
	was = h->unwritable;
	h->unwritable = is;
	h->why = why;
	if (!job->failed)
		take_clock(h, now);
	pthread_mutex_unlock(&h->lock);
	if (is && !was)
		log_event(LOG_ERROR, "nothing can be written down: no new work is taken", "why",
			  why.msg, "do", err_remediation(&why), NULL);
	if (!is && was) {
		log_event(LOG_INFO, "the database takes writes again", NULL);
		reconcile_look(b->reconcile); /* what ended meanwhile is not in the records yet */
	}
}

/* ---- the loops ---- */

static void on_beat(struct job *job)
{
	struct health_beat *beat = container_of(job, struct health_beat, job);

	beat->lag_ms = time_mono_ms() - beat->sent_ms;
	beat->under_way = false;
}

static void beat(struct berthd *b)
{
	for (size_t i = 0; i < b->reactor_count; i++) {
		struct health_beat *x = &b->health->beats[i];

		if (x->under_way)
			continue;
		x->under_way = true;
		x->sent_ms = time_mono_ms();
		x->job = (struct job){ .reactor = &b->reactors[i], .done = on_beat };
		reactor_post(&b->reactors[i], &x->job);
	}
}

static uint64_t lag_of(const struct health_beat *x)
{
	uint64_t sent = x->sent_ms, now = time_mono_ms(), waits = now > sent ? now - sent : 0;

	return x->under_way && waits > x->lag_ms ? waits : x->lag_ms;
}

/* ---- all of it ---- */

void health_tick(struct reactor *r)
{
	struct health *h = r->berthd->health;

	beat(r->berthd);
	if (h->probing || time_mono_ms() < h->next_ms)
		return;
	h->probing = true;
	job_submit(r, NULL, &h->job, probe, on_probed);
}

static const char *clock_word(const struct health *h)
{
	if (!h->clock_span_ms)
		return "unknown";
	return llabs(h->clock_skew_ms) > (int64_t)(SKEW_MS + h->clock_span_ms) ? "skewed" : "ok";
}

void health_figures(struct berthd *b, struct health_figures *ret)
{
	struct health *h = b->health;

	*ret = (struct health_figures){ 0 };
	pthread_mutex_lock(&h->lock);
	ret->unwritable = h->unwritable;
	ret->why = h->why;
	ret->state_disk = disk_word(h);
	ret->disk_free = h->disk_free;
	ret->clock = clock_word(h);
	ret->clock_skew_ms = h->clock_skew_ms;
	pthread_mutex_unlock(&h->lock);
	ret->overdue = sweep_watch_overdue(b->sweep_watch);
	if (!ret->unwritable) /* not before the next probe, but as soon as a job has seen it */
		ret->unwritable = workers_unwritable(&b->workers, RECENT_MS, &ret->why);
	for (size_t i = 0; i < b->reactor_count; i++) {
		uint64_t lag = lag_of(&h->beats[i]);

		if (lag > ret->loop_lag_ms)
			ret->loop_lag_ms = lag;
	}
}

void health_init(struct berthd *b)
{
	pthread_mutex_init(&b->health->lock, NULL);
	measure_disk(b->health, &b->settings);
	b->health->free_ms = time_mono_ms();
}

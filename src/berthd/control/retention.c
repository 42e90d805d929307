#include "berthd/control/retention.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "berthd/runtime/berthd.h"
#include "lib/log.h"

#define EVERY_MS (60 * 60 * 1000) /* or as often as the shortest time, if that is less */
#define AGAIN_MS 1000             /* a batch was full; also the least */

struct retention_keeper {
	struct reactor *reactor;
	uv_timer_t timer;
	struct job job;
	struct retention_ages ages;
	uint64_t every_ms;
	uint64_t removed;
	bool more;
};

/* clang-format off */
static const size_t settings[RETENTION_COUNT] = {
	[RETENTION_USAGE]	= offsetof(struct berthd_settings, retention_usage),
	[RETENTION_NETWORK]	= offsetof(struct berthd_settings, retention_network),
	[RETENTION_EVENTS]	= offsetof(struct berthd_settings, retention_events),
	[RETENTION_ALERTS]	= offsetof(struct berthd_settings, retention_alerts),
	[RETENTION_SECURITY]	= offsetof(struct berthd_settings, retention_security),
	[RETENTION_INCIDENTS]	= offsetof(struct berthd_settings, retention_incidents),
	[RETENTION_IDEMPOTENCY]	= offsetof(struct berthd_settings, retention_idempotency),
	[RETENTION_SESSIONS]	= offsetof(struct berthd_settings, retention_sessions),
	[RETENTION_CAPS]	= offsetof(struct berthd_settings, retention_caps),
	[RETENTION_TOMBSTONES]	= offsetof(struct berthd_settings, retention_tombstones),
};
/* clang-format on */

static void on_time(uv_timer_t *timer);

static int run(struct job *job, struct store *s, struct err *e)
{
	struct retention_keeper *k = container_of(job, struct retention_keeper, job);

	k->removed = 0;
	k->more = false;
	return store_retention_run(s, &k->ages, &k->removed, &k->more, e);
}

static void on_done(struct job *job)
{
	struct retention_keeper *k = container_of(job, struct retention_keeper, job);
	char count[24];

	snprintf(count, sizeof(count), "%" PRIu64, k->removed);
	if (job->failed)
		log_event(LOG_WARN, "old records could not be removed", "why", job->e.msg, NULL);
	else if (k->removed > 0)
		log_event(LOG_INFO, "old records were removed", "rows", count, NULL);
	if (!uv_is_closing((uv_handle_t *)&k->timer))
		uv_timer_start(&k->timer, on_time, k->more ? AGAIN_MS : k->every_ms, 0);
}

static void on_time(uv_timer_t *timer)
{
	struct retention_keeper *k = timer->data;

	job_submit_background(k->reactor, &k->job, run, on_done);
}

struct retention_ages retention_ages(const struct berthd_settings *set)
{
	struct retention_ages ages;

	for (int i = 0; i < RETENTION_COUNT; i++)
		ages.ms[i] = *(const uint64_t *)(const void *)((const char *)set + settings[i]);
	return ages;
}

struct retention_keeper *retention_begin(struct reactor *r)
{
	struct retention_keeper *k = xcalloc(1, sizeof(*k));

	k->reactor = r;
	k->ages = retention_ages(&r->berthd->settings);
	k->every_ms = EVERY_MS;
	for (int i = 0; i < RETENTION_COUNT; i++)
		if (k->ages.ms[i] > 0 && k->ages.ms[i] < k->every_ms)
			k->every_ms = k->ages.ms[i];
	if (k->every_ms < AGAIN_MS)
		k->every_ms = AGAIN_MS;
	uv_timer_init(&r->loop, &k->timer);
	k->timer.data = k;
	uv_timer_start(&k->timer, on_time, k->every_ms, 0);
	return k;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void retention_end(struct retention_keeper *k)
{
	if (k)
		uv_close((uv_handle_t *)&k->timer, on_closed);
}

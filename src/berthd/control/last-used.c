#include "berthd/control/last-used.h"

#include <stdlib.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/time.h"
#include "store/sandbox.h"

#define AT_ONCE  5000
#define LEAST_MS 50

struct last_used {
	struct reactor *reactor;
	uv_timer_t timer;
	struct job job;
	bool writing;
	struct sandbox_used used[AT_ONCE];
	size_t count; /* not written yet */
};

static int write_used(struct job *job, struct store *s, struct err *e)
{
	struct last_used *u = container_of(job, struct last_used, job);

	return store_sandboxes_used(s, u->used, u->count, e);
}

/* What could not be written is tried again before anything newer is. */
static void on_written(struct job *job)
{
	struct last_used *u = container_of(job, struct last_used, job);

	u->writing = false;
	if (job->failed)
		log_event(LOG_WARN, "last uses are not written", "why", job->e.msg, NULL);
	else
		u->count = 0;
	crash_point("life.uses-written");
}

static void on_timer(uv_timer_t *timer)
{
	struct last_used *u = timer->data;
	struct berthd *b = u->reactor->berthd;

	if (u->writing)
		return;
	if (u->count == 0)
		u->count = sandbox_cache_take_used(b->sandboxes, time_mono_ms(), u->used, AT_ONCE);
	if (u->count == 0)
		return;
	u->writing = true;
	job_submit(u->reactor, NULL, &u->job, write_used, on_written);
}

struct last_used *last_used_begin(struct reactor *r)
{
	struct last_used *u = xcalloc(1, sizeof(*u));
	uint64_t every = constant_ms(CONSTANT_USED_FLUSH,
				     (unsigned)r->berthd->settings.timer_divisor);

	every = every < LEAST_MS ? LEAST_MS : every;
	u->reactor = r;
	uv_timer_init(&r->loop, &u->timer);
	u->timer.data = u;
	uv_timer_start(&u->timer, on_timer, every, every);
	return u;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void last_used_end(struct last_used *u)
{
	uv_close((uv_handle_t *)&u->timer, on_closed);
}

#include "berthd/control/wait-stable.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/control/create-resume.h"
#include "berthd/runtime/berthd.h"
#include "lib/errno-map.h"
#include "lib/str.h"
#include "lib/time.h"

#define WAIT_MS       10000
#define LOOK_FIRST_MS 20 /* from one look to the next, doubling */
#define LOOK_LAST_MS  320

struct settling {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	char id[SANDBOX_ID_SIZE];
	struct idempotency_use use;
	wait_stable_fn *done;
	void *data;
	struct job job;
	uv_timer_t timer; /* the next look */
	uint64_t give_up_ms, pause_ms;
	struct sandbox sb;
};

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void end(struct settling *w, const struct err *why)
{
	w->done(w->data, &w->sb, why);
	uv_close((uv_handle_t *)&w->timer, on_closed);
}

static int look(struct job *job, struct store *s, struct err *e)
{
	struct settling *w = container_of(job, struct settling, job);

	return store_sandbox_get(s, NULL, w->id, &w->sb, e);
}

static void on_looked(struct job *job);

static void on_time_to_look(uv_timer_t *timer)
{
	struct settling *w = timer->data;

	job_submit(w->reactor, w->sb.owner, &w->job, look, on_looked); /* known after one look */
}

/*
 * By the clock: the change may be at work on another host, or was begun by a berthd that is gone,
 * and then the row in the database is all that is heard of it. WAIT_MS ends it.
 */
static void wait_a_little(void *data)
{
	struct settling *w = data;

	uv_timer_start(&w->timer, on_time_to_look, w->pause_ms, 0);
	w->pause_ms = w->pause_ms < LOOK_LAST_MS ? w->pause_ms * 2 : LOOK_LAST_MS;
}

static bool is_settled(enum sandbox_state s)
{
	return s != SANDBOX_CREATING && s != SANDBOX_WAKING && s != SANDBOX_FALLING_ASLEEP;
}

static void on_looked(struct job *job)
{
	struct settling *w = container_of(job, struct settling, job);
	struct resume how = {
		.reactor = w->reactor,
		.request = w->request,
		.sb = &w->sb,
		.use = &w->use,
		.done = wait_a_little,
		.data = w,
	};
	struct err e;

	if (job->failed) {
		e = job->e;
		return end(w, &e);
	}
	if (is_settled(w->sb.state))
		return end(w, NULL);
	if (time_mono_ms() < w->give_up_ms) {
		if (resume_possible(w->reactor, &w->sb))
			return resume_create(&how);
		return wait_a_little(w);
	}
	err_set(&e, ERR_BUSY, "%s is still %s", w->sb.id, sandbox_state_name(w->sb.state));
	err_fix(&e, "Send the same request again.");
	err_reason(&e, REASON_NOT_READY, 0);
	end(w, &e);
}

void wait_stable_begin(const struct wait_stable *how)
{
	struct settling *w = xcalloc(1, sizeof(*w));

	w->reactor = how->reactor;
	(void)!str_copy(w->request, sizeof(w->request), how->request);
	(void)!str_copy(w->id, sizeof(w->id), how->sandbox);
	if (how->use)
		w->use = *how->use;
	w->done = how->done;
	w->data = how->data;
	w->give_up_ms = time_mono_ms() + WAIT_MS;
	w->pause_ms = LOOK_FIRST_MS;
	uv_timer_init(&w->reactor->loop, &w->timer);
	w->timer.data = w;
	on_time_to_look(&w->timer);
}

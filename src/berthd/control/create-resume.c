#include "berthd/control/create-resume.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/control/inflight.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"

#define RESUME_MS 2000 /* another berthd of this host may be at it: it has had its time */

/* The change carries all of it; `data` of the change is this. */
struct resuming {
	struct transition *c;
	void (*done)(void *data);
	void *data;
};

/* How long it is in its state: that began when its deadline was set. */
static uint64_t age_ms(const struct reactor *r, const struct sandbox *sb)
{
	unsigned divisor = (unsigned)r->berthd->settings.timer_divisor;
	uint64_t whole = lifecycle_deadline_ms(sb->state, divisor);
	uint64_t end = sb->stop.deadline_ms;

	if (sb->read_ms >= end)
		return whole;
	return end - sb->read_ms < whole ? whole - (end - sb->read_ms) : 0;
}

bool resume_possible(struct reactor *r, const struct sandbox *sb)
{
	bool waits = sb->state == SANDBOX_CREATING || sb->state == SANDBOX_WAKING ||
		     sb->state == SANDBOX_FALLING_ASLEEP;

	return waits && r->node.up && age_ms(r, sb) >= RESUME_MS &&
	       strcmp(sb->host, r->berthd->settings.host) == 0 &&
	       !inflight_has(r->berthd->inflight, sb->id);
}

static void finish(struct resuming *r)
{
	void (*done)(void *data) = r->done;
	void *data = r->data;

	transition_free(r->c);
	free(r);
	done(data);
}

static void on_changed(struct transition *c, const struct err *why)
{
	log_event(why ? LOG_WARN : LOG_INFO, "a create was taken up again", "sandbox", c->sb.id,
		  "request_id", c->request, "why", why ? why->msg : NULL, NULL);
	finish(c->data);
}

/* Only what the kernel said becomes an event. */
static void on_observed(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct resuming *r = data;
	const struct node_observation *o = &record->observation;

	(void)fd;
	crash_point("life.create-found");
	if (why || o->process == PRESENCE_UNKNOWN)
		return finish(r);
	transition_event(r->c, o->process == PRESENCE_PRESENT ? EV_SEEN : EV_ABSENT, NULL,
			 on_changed);
}

static const struct node_call_events observed_events = { .on_done = on_observed };

void resume_create(const struct resume *how)
{
	struct resuming *r = xcalloc(1, sizeof(*r));
	struct node_target t = { .generation = how->sb->generation };

	r->c = transition_new(how->reactor, how->request);
	r->c->sb = *how->sb;
	r->c->use = *how->use;
	r->c->data = r;
	r->done = how->done;
	r->data = how->data;
	memcpy(t.request, r->c->request, sizeof(t.request));
	memcpy(t.sandbox, how->sb->id, sizeof(t.sandbox));
	node_call(&how->reactor->node, NODE_OBSERVE, &t, -1, &observed_events, r);
}

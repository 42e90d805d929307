#include "berthd/control/takeover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/control/capacity.h"
#include "berthd/control/transition.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/time.h"
#include "store/host.h"

#define AT_ONCE      HOST_ARRIVALS_MAX
#define REPLACED_MAX 100 /* in one transaction */

/* A row as it was first seen late, and when, by our own clock. */
struct sighting {
	struct host_late row;
	uint64_t since_ms;
	bool seen; /* in this round */
};

struct takeover {
	struct reactor *reactor;
	unsigned divisor;
	uint64_t epoch;
	struct job job;
	bool under_way;
	struct sandbox arrived[AT_ONCE]; /* by the job */
	size_t count;
	size_t at_work;
	struct sighting sightings[HOST_LATE_MAX]; /* the job's own */
	size_t sighting_count;
};

/* ---- hosts that are late ---- */

static struct sighting *find(struct takeover *t, const struct host_late *h)
{
	for (size_t i = 0; i < t->sighting_count; i++) {
		struct sighting *s = &t->sightings[i];

		if (strcmp(s->row.id, h->id) == 0 && s->row.epoch == h->epoch &&
		    s->row.lease_until_ms == h->lease_until_ms)
			return s;
	}
	return NULL;
}

static void on_late(const struct host_late *h, void *arg)
{
	struct takeover *t = arg;
	struct sighting *s = find(t, h);

	if (!s && t->sighting_count < HOST_LATE_MAX) {
		s = &t->sightings[t->sighting_count++];
		*s = (struct sighting){ .row = *h, .since_ms = time_boot_ms() };
	}
	if (s)
		s->seen = true;
}

/* A host that renewed, or was taken, is forgotten. */
static void forget_others(struct takeover *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->sighting_count; i++)
		if (t->sightings[i].seen)
			t->sightings[kept++] = t->sightings[i];
	t->sighting_count = kept;
	for (size_t i = 0; i < kept; i++)
		t->sightings[i].seen = false;
}

/*
 * The database's clock may jump, and then a lease seems to be over that is not.
 * So its row must also have stood still for a whole lease by our own clock: a
 * host that lives would have changed it.
 */
static int take_late(struct takeover *t, struct store *s, const struct host_taker *by,
		     struct err *e)
{
	uint64_t lease = constant_ms(CONSTANT_HOST_LEASE, t->divisor);

	if (store_hosts_late(s, by, on_late, t, e) < 0)
		return -1;
	forget_others(t);
	for (size_t i = 0; i < t->sighting_count; i++) {
		const struct sighting *seen = &t->sightings[i];
		int n;

		if (time_boot_ms() - seen->since_ms < lease)
			continue;
		n = store_host_take(s, by, &seen->row, e);
		if (n < 0)
			return -1;
		crash_point("cell.host-taken");
		if (n > 0)
			log_event(LOG_WARN, "host is lost: lease and margin are over", "lost",
				  seen->row.id, "by", by->id, NULL);
	}
	return 0;
}

/* ---- what it ran ---- */

static void on_replaced(const struct host_moved *m, void *arg)
{
	(*(size_t *)arg)++;
	log_event(LOG_WARN, "takeover: sandbox begins anew on another host", "sandbox", m->sandbox,
		  "host", m->host, NULL);
}

struct arrivals {
	size_t count;
	struct host_moved all[AT_ONCE];
};

static void on_arrived(const struct host_moved *m, void *arg)
{
	struct arrivals *a = arg;

	if (a->count < AT_ONCE)
		a->all[a->count++] = *m;
}

static int run(struct job *job, struct store *s, struct err *e)
{
	struct takeover *t = container_of(job, struct takeover, job);
	struct host_taker by = {
		.id = t->reactor->berthd->settings.host,
		.epoch = t->epoch,
		.divisor = t->divisor,
	};
	struct host_replacement how = {
		.share = capacity_share(t->reactor->berthd),
		.limit = REPLACED_MAX,
	};
	struct arrivals a = { 0 };
	size_t moved;
	int unreadable, failed = 0;

	if (take_late(t, s, &by, e) < 0)
		return -1;
	do {
		moved = 0;
		unreadable = store_hosts_replace(s, &by, &how, on_replaced, &moved, e);
		if (unreadable < 0)
			return -1;
		if (unreadable > 0)
			log_event(LOG_WARN, "takeover: a record cannot be read, and waits", "why",
				  e->msg, NULL);
	} while (moved > 0 && moved + (size_t)unreadable == REPLACED_MAX);
	crash_point("cell.sandboxes-replaced");
	if (store_host_arrivals(s, by.id, on_arrived, &a, e) < 0)
		return -1;
	crash_point("cell.arrivals-taken");
	for (size_t i = 0; i < a.count; i++) {
		struct sandbox *sb = &t->arrived[t->count];

		if (store_sandbox_get(s, NULL, a.all[i].sandbox, sb, e) < 0)
			failed = -1; /* those after it are ours all the same */
		else if (sb->state == SANDBOX_CREATING && sb->generation == a.all[i].generation)
			t->count++;
	}
	return failed;
}

static void on_built(struct transition *c, const struct err *why)
{
	struct takeover *t = c->data;

	log_event(why ? LOG_WARN : LOG_INFO, "takeover: start of a sandbox of a lost host ended",
		  "sandbox", c->sb.id, "state", sandbox_state_name(c->sb.state), "why",
		  why ? why->msg : NULL, NULL);
	transition_free(c);
	if (--t->at_work == 0)
		takeover_look(t, t->epoch); /* there may be more */
}

static void build(struct takeover *t, const struct sandbox *sb)
{
	struct transition *c = transition_new(t->reactor, "takeover");

	c->sb = *sb;
	c->data = t;
	transition_event(c, EV_ABSENT, sb->reason, on_built);
}

/* What could not be read now comes by its deadline, or at the next start. */
static void on_done(struct job *job)
{
	struct takeover *t = container_of(job, struct takeover, job);

	t->under_way = false;
	if (job->failed)
		log_event(LOG_WARN, "takeover: scan of other hosts failed", "why", job->e.msg,
			  NULL);
	t->at_work = t->count;
	for (size_t i = 0; i < t->count; i++)
		build(t, &t->arrived[i]);
}

struct takeover *takeover_begin(struct reactor *r, unsigned divisor)
{
	struct takeover *t = xcalloc(1, sizeof(*t));

	t->reactor = r;
	t->divisor = divisor;
	return t;
}

void takeover_end(struct takeover *t)
{
	free(t);
}

void takeover_look(struct takeover *t, uint64_t epoch)
{
	if (t->under_way || t->at_work > 0)
		return;
	t->epoch = epoch; /* not before: the worker reads it */
	t->under_way = true;
	t->count = 0;
	job_submit(t->reactor, NULL, &t->job, run, on_done);
}

#include "berthd/control/reconcile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/host-lease.h"
#include "berthd/control/deadline.h"
#include "berthd/control/deletion.h"
#include "berthd/control/guest.h"
#include "berthd/control/inflight.h"
#include "berthd/control/limits.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/control/transition.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/strv.h"
#include "lib/time.h"

#define DUE_EVERY_MS   500 /* divided like all times, but no more often than */
#define DUE_LEAST_MS   20
#define DUE_AGAIN_MS   30000 /* then it is due again, should berthd die with it in hand */
#define SWEEP_LEAST_MS 3000
#define AT_WORK_MAX    16 /* changes under way at once; the rest wait their turn */
#define NOTHING_LEFT   "nothing of it is left on its host"
#define KNOWN_FORMAT   "%s.%" PRIu64

/* One sandbox that must be looked at, by its record or because berth-node spoke of it. */
struct pending {
	struct reconcile *rc;
	struct sandbox sb; /* version 0: the record is not read yet */
	struct node_observation seen;
	bool news;    /* told once: kept until it can be looked at */
	bool of_look; /* found by a look at everything, which ends with the last of these */
	void (*begin)(struct pending *p);
	struct pending *next;
};

struct queue {
	struct pending *first, **last;
};

struct reconcile {
	struct reactor *reactor;
	struct job job;
	uv_timer_t timer;
	bool asking;    /* the job is under way */
	bool listing;   /* berth-node is telling what it has */
	bool caught_up; /* who follows it has heard the list: what comes now is news */
	bool look_at_all;
	bool reads_all;               /* the job under way does; fixed when it was submitted */
	bool follow;                  /* a new link: berth-node has to tell what ends from now on */
	_Atomic bool wanted, looking; /* a caller asked for a look at everything; it is under way */
	uint64_t sweep_ms;            /* when the next sweep is due; 0: none was planned yet */
	struct reconcile_sweeps sweeps;
	struct strv known; /* all records when they were read: KNOWN_FORMAT; sorted */
	struct strv read;  /* the next `known`, only the worker's until it is done */
	int unreadable;    /* the worker's too: how many are not in it; -1: not all were read */
	struct err unreadable_why;
	struct queue found; /* by the job, on its worker */
	struct queue todo;
	struct queue later; /* news of what is being changed */
	size_t at_work;
	size_t look_left;                  /* of those of the look, how many have not ended */
	bool look_failed;                  /* berth-node did not tell all of it */
	_Atomic uint64_t cleaned, skipped; /* leftovers */
};

static void next(struct reconcile *rc);

static void put(struct queue *q, struct pending *p)
{
	*q->last = p;
	q->last = &p->next;
}

static struct pending *add(struct reconcile *rc, struct queue *q, const struct sandbox *sb,
			   void (*begin)(struct pending *))
{
	struct pending *p = xcalloc(1, sizeof(*p));

	p->rc = rc;
	p->sb = *sb;
	p->begin = begin;
	put(q, p);
	return p;
}

static struct pending *take(struct queue *q)
{
	struct pending *p = q->first;

	if (p) {
		q->first = p->next;
		p->next = NULL;
	}
	if (!q->first)
		q->last = &q->first;
	return p;
}

static void move_all(struct queue *to, struct queue *from)
{
	struct pending *p;

	while ((p = take(from)))
		put(to, p);
}

static void drop(struct pending *p)
{
	p->rc->look_left -= p->of_look;
	free(p);
}

/* Not now. The next sweep comes by again; news do not. */
static void leave(struct pending *p)
{
	if (p->news)
		put(&p->rc->later, p);
	else
		drop(p);
}

static void finished(struct pending *p)
{
	struct reconcile *rc = p->rc;

	drop(p);
	rc->at_work--;
	next(rc);
}

static void not_now(struct pending *p)
{
	struct reconcile *rc = p->rc;

	leave(p);
	rc->at_work--;
	next(rc);
}

static void on_changed(struct transition *c, const struct err *why)
{
	struct pending *p = c->data;

	if (why)
		log_event(LOG_WARN, "reconcile of a sandbox failed", "sandbox", c->sb.id, "why",
			  why->msg, NULL);
	if (c->sb.state == SANDBOX_GONE)
		p->rc->cleaned++;
	transition_free(c);
	finished(p);
}

static void change(struct pending *p, enum sandbox_event ev, const char *reason)
{
	struct transition *c = transition_new(p->rc->reactor, "reconcile");

	c->sb = p->sb;
	c->seen = p->seen;
	c->data = p;
	transition_event(c, ev, reason, on_changed);
}

static void on_limited(void *data, const struct sandbox *sb, const struct err *why)
{
	if (why)
		log_event(LOG_WARN, "limits are not in force", "sandbox", sb->id, "why", why->msg,
			  NULL);
	finished(data);
}

static const char *end_reason(const struct pending *p, const struct node_observation *o)
{
	return sandbox_end_reason(&p->sb, time_booted_ms(), o->ended == ENDED_BY_MEMORY);
}

static void on_ended(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct pending *p = data;

	(void)fd;
	crash_point("life.rest-ended");
	if (why || record->observation.process != PRESENCE_ABSENT)
		return not_now(p); /* not seen gone */
	change(p, EV_ABSENT, end_reason(p, &record->observation));
}

static const struct node_call_events ended_events = { .on_done = on_ended };

/* Its first process ended by itself. What an engine leaves behind is ended too, and looked at. */
static void end_rest(struct pending *p)
{
	struct node_stop stop = {
		.request = "reconcile",
		.generation = p->sb.generation,
		.life = p->seen.life,
	};

	memcpy(stop.sandbox, p->sb.id, sizeof(stop.sandbox));
	node_call(&p->rc->reactor->node, NODE_STOP, &stop, -1, &ended_events, p);
}

static void on_deleted_destroyed(void *data, const union node_any *record, int *fd,
				 const struct err *why)
{
	struct pending *p = data;

	(void)record, (void)fd;
	crash_point("life.ghost-destroyed");
	if (why)
		p->rc->skipped++;
	else
		p->rc->cleaned++;
	log_event(LOG_WARN,
		  why ? "a deleted sandbox's rest was not destroyed"
		      : "a deleted sandbox's rest was destroyed",
		  "sandbox", p->sb.id, "why", why ? why->msg : NULL, NULL);
	finished(p);
}

static const struct node_call_events deleted_events = { .on_done = on_deleted_destroyed };

static void destroy(struct pending *p)
{
	struct node_target t = { .request = "reconcile", .generation = p->sb.generation };

	memcpy(t.sandbox, p->sb.id, sizeof(t.sandbox));
	node_call(&p->rc->reactor->node, NODE_DESTROY, &t, -1, &deleted_events, p);
}

/* Not even its disk is there, and the record still promises it. */
static bool is_lost(const struct pending *p, const struct node_observation *o)
{
	return o->presence == PRESENCE_ABSENT && p->sb.files_kept &&
	       p->sb.state != SANDBOX_CREATING;
}

/*
 * It failed before it was ever ready, and what should have cleaned up after that did not:
 * berth-node was killed, or away. The record promises nothing of it. One that was *seen* to be
 * gone and is there again (a pool that was mounted late) is not destroyed.
 */
static bool is_of_no_use(const struct pending *p, const struct node_observation *o)
{
	return p->sb.state == SANDBOX_FAILED && !p->sb.files_kept &&
	       o->presence == PRESENCE_PRESENT && strcmp(p->sb.failed_why, NOTHING_LEFT) != 0;
}

static void see_to_limits(struct pending *p)
{
	if (!p->sb.limits_pending)
		return finished(p);
	limits_enforce(p->rc->reactor, "reconcile", &p->sb, on_limited, p);
}

static void on_guest_recorded(void *data, const struct sandbox *sb, const struct err *why)
{
	struct pending *p = data;

	if (why)
		log_event(LOG_WARN, "version of a sandbox's init is not recorded", "sandbox",
			  sb->id, "why", why->msg, NULL);
	p->sb = *sb;
	see_to_limits(p);
}

static void ready_as_it_should_be(struct pending *p)
{
	struct guest_versions seen = guest_seen(&p->seen);

	sandbox_cache_put(p->rc->reactor->berthd->sandboxes, &p->sb);
	if (!guest_is_news(p->sb.guest, seen))
		return see_to_limits(p);
	guest_record(p->rc->reactor, &p->sb, seen, on_guest_recorded, p);
}

/* Only what the kernel said becomes an event; unknown changes nothing. */
static void on_observed(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct pending *p = data;
	const struct node_observation *o = &record->observation;

	(void)fd;
	crash_point("life.looked-at");
	/* Else it is of this sandbox alone: all others were seen. */
	p->rc->look_failed |= p->of_look && why && why->code == ERR_BUSY;
	if (why || o->process == PRESENCE_UNKNOWN)
		return not_now(p);
	p->seen = *o;
	if (p->sb.state == SANDBOX_READY && o->ready)
		return ready_as_it_should_be(p);
	if (is_lost(p, o))
		return change(p, EV_REMOVED, NOTHING_LEFT);
	if (is_of_no_use(p, o))
		return destroy(p);
	if (o->process == PRESENCE_ABSENT &&
	    (p->sb.state == SANDBOX_ASLEEP || p->sb.state == SANDBOX_FAILED))
		return finished(p); /* as it should be: nothing new */
	if (p->sb.state == SANDBOX_READY && o->ended && o->process == PRESENCE_PRESENT)
		return end_rest(p);
	if (o->process == PRESENCE_PRESENT)
		return change(p, EV_SEEN, NULL);
	change(p, EV_ABSENT, p->sb.state == SANDBOX_READY ? end_reason(p, o) : NULL);
}

static const struct node_call_events observed_events = { .on_done = on_observed };

static void look(struct pending *p)
{
	struct node_target t = { .request = "reconcile", .generation = p->sb.generation };

	memcpy(t.sandbox, p->sb.id, sizeof(t.sandbox));
	node_call(&p->rc->reactor->node, NODE_OBSERVE, &t, -1, &observed_events, p);
}

static void time_out(struct pending *p)
{
	bool starting = p->sb.state == SANDBOX_CREATING || p->sb.state == SANDBOX_WAKING;

	change(p, EV_TIMEOUT, starting ? "it did not come up in time" : NULL);
}

/* It rests, and its time may have come. */
static void ring(struct pending *p)
{
	struct transition *c = transition_new(p->rc->reactor, "alarm");

	c->sb = p->sb;
	c->data = p;
	deadline_fire(c, on_changed);
}

/* A deletion whose time has come. Also while its attempt is under way: that has a deadline. */
static void climb(struct pending *p)
{
	struct transition *c = transition_new(p->rc->reactor, "reconcile");

	c->sb = p->sb;
	c->data = p;
	deletion_go_on(c, on_changed);
}

/* The change that had begun an attempt and did not end it is gone, and its answer with it. */
static void give_up(struct pending *p)
{
	struct transition *c = transition_new(p->rc->reactor, "reconcile");

	c->sb = p->sb;
	c->data = p;
	deletion_lost(c, on_changed);
}

/* ---- what berth-node speaks of: its record is read first ---- */

struct reading {
	struct job job;
	struct pending *p;
	struct sandbox sb;
};

static int read_record(struct job *job, struct store *s, struct err *e)
{
	struct reading *r = container_of(job, struct reading, job);

	return store_sandbox_get(s, NULL, r->p->sb.id, &r->sb, e);
}

/*
 * Only a tombstone, or a record of a later generation, proves that no client wants
 * it. What is of the record is looked at by that; everything else is left alone.
 */
static void on_record_read(struct job *job)
{
	struct reading *r = container_of(job, struct reading, job);
	struct pending *p = r->p;
	struct sandbox sb = r->sb;
	struct err e = job->e;
	bool failed = job->failed;

	free(r);
	if (failed) {
		log_event(LOG_WARN, "berth-node has a sandbox no record names: left alone",
			  "sandbox", p->sb.id, "why", e.msg, NULL);
		p->news = p->news && e.code != ERR_NOT_FOUND && e.code != ERR_INTERNAL;
		p->rc->skipped++;
		return not_now(p);
	}
	if (sb.state == SANDBOX_GONE || sb.generation > p->sb.generation)
		return destroy(p);
	if (sb.generation != p->sb.generation || sb.state == SANDBOX_DELETING ||
	    strcmp(sb.host, p->rc->reactor->berthd->settings.host) != 0)
		return finished(p);
	p->sb = sb;
	look(p);
}

static void look_for_record(struct pending *p)
{
	struct reading *r = xcalloc(1, sizeof(*r));

	r->p = p;
	r->job = (struct job){
		.reactor = p->rc->reactor,
		.run = read_record,
		.done = on_record_read,
	};
	worker_submit(&p->rc->reactor->berthd->workers, &r->job);
}

static int by_name(const void *name, const void *item)
{
	return strcmp(name, *(char *const *)item);
}

static bool is_known(const struct reconcile *rc, const struct sandbox *sb)
{
	char name[SANDBOX_ID_SIZE + 24];

	snprintf(name, sizeof(name), KNOWN_FORMAT, sb->id, sb->generation);
	return rc->known.len > 0 &&
	       bsearch(name, rc->known.items, rc->known.len, sizeof(*rc->known.items), by_name);
}

static struct sandbox spoken_of(const union node_any *part)
{
	struct sandbox sb = { .generation = part->observation.generation };

	memcpy(sb.id, part->observation.sandbox, sizeof(sb.id));
	return sb;
}

static void on_listed(void *data, const union node_any *part)
{
	struct reconcile *rc = data;
	struct sandbox sb = spoken_of(part);

	if (is_known(rc, &sb))
		return;
	/* Memory is no proof: the database is asked. */
	add(rc, &rc->todo, &sb, look_for_record)->of_look = true;
	rc->look_left++;
}

static void on_list_end(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct reconcile *rc = data;

	(void)record, (void)fd; /* the link broke: all again when it is up */
	rc->look_failed |= why != NULL;
	rc->listing = false;
	crash_point("life.inventory-read");
	next(rc);
}

static const struct node_call_events list_events = {
	.on_part = on_listed,
	.on_done = on_list_end,
};

/* The list of a call that follows ends with a part that names no sandbox; then come the news. */
static void on_followed(void *data, const union node_any *part)
{
	struct reconcile *rc = data;
	struct sandbox sb = spoken_of(part);

	if (!rc->caught_up && sb.id[0])
		return on_listed(data, part);
	if (!rc->caught_up) {
		rc->caught_up = true;
		return on_list_end(data, part, NULL, NULL);
	}
	/* It may be of an earlier life by now: what holds is looked at. */
	add(rc, &rc->todo, &sb, look_for_record)->news = true;
	next(rc);
}

/* It never ends by itself: berth-node is gone or stuck, and what it told last may not hold. */
static void on_follow_end(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct reconcile *rc = data;

	rc->look_at_all = rc->follow = true;
	on_list_end(data, record, fd, why);
}

static const struct node_call_events follow_events = {
	.on_part = on_followed,
	.on_done = on_follow_end,
};

static void next(struct reconcile *rc)
{
	while (rc->todo.first && rc->at_work < AT_WORK_MAX) {
		struct pending *p = take(&rc->todo);

		if (p->begin != climb && inflight_has(rc->reactor->berthd->inflight, p->sb.id)) {
			leave(p); /* the change that is at it also ends it */
			continue;
		}
		rc->at_work++;
		p->begin(p);
	}
	if (!rc->looking || rc->look_at_all || rc->listing || rc->look_left > 0)
		return; /* one deletion that takes long holds up no sweep */
	rc->looking = false;
	if (rc->look_failed)
		return; /* the next one is a sweep again; should it stay so, sweep-watch tells */
	rc->sweeps.finished++;
	rc->sweeps.finished_ms = uv_now(&rc->reactor->loop);
}

static void take_row(const struct sandbox *sb, void *arg)
{
	struct reconcile *rc = arg;
	struct moment at = {
		.now_ms = sb->read_ms,
		.divisor = (unsigned)rc->reactor->berthd->settings.timer_divisor,
	};

	sandbox_cache_put(rc->reactor->berthd->sandboxes, sb);
	/* They come in the order of strcmp(), and the dot is before all that is in an id. */
	strv_addf(&rc->read, KNOWN_FORMAT, sb->id, sb->generation);
	rc->skipped += sb->state == SANDBOX_DELETING; /* it waits for its next attempt */
	if (sb->state != SANDBOX_DELETING)
		add(rc, &rc->found, sb, look)->of_look = true;
	else if (sb->stop.state == STOP_STOPPING)
		add(rc, &rc->found, sb, give_up)->of_look = true;
	else if (stop_is_misdated(&sb->stop, &at))
		add(rc, &rc->found, sb, climb); /* an attempt of the ladder, as one that is due */
}

static void take_due(const struct sandbox *sb, void *arg)
{
	struct reconcile *rc = arg;

	if (sb->state == SANDBOX_DELETING)
		add(rc, &rc->found, sb, climb);
	else if (lifecycle_deadline_ms(sb->state, 1) > 0)
		add(rc, &rc->found, sb, time_out);
	else
		add(rc, &rc->found, sb, ring);
}

static int read_records(struct job *job, struct store *s, struct err *e)
{
	struct reconcile *rc = container_of(job, struct reconcile, job);
	const char *host = rc->reactor->berthd->settings.host;
	struct sandbox_due due = { .host = host,
				   .limit = STORE_SWEEP_PAGE,
				   .again_ms = DUE_AGAIN_MS };

	if (rc->reads_all)
		rc->unreadable =
			store_sandboxes_of_host(s, host, take_row, rc, &rc->unreadable_why);
	if (store_sandboxes_due(s, &due, take_due, rc, e) < 0)
		return -1;
	if (!rc->reads_all || rc->unreadable >= 0) /* what is damaged the look at all tells */
		return 0;
	*e = rc->unreadable_why;
	return -1;
}

/* On the loop, which alone looks into `known`: a list may be arriving meanwhile. */
static void take_known(struct reconcile *rc)
{
	strv_done(&rc->known);
	rc->known = rc->read;
	rc->read = (struct strv){ 0 };
	rc->sweeps.unreadable = rc->unreadable;
	rc->sweeps.unreadable_why = rc->unreadable_why;
	if (rc->unreadable > 0)
		log_event(LOG_ERROR, "sandbox record cannot be read: sandbox left alone", "why",
			  rc->unreadable_why.msg, NULL);
}

static void on_records(struct job *job)
{
	struct reconcile *rc = container_of(job, struct reconcile, job);
	struct node_cursor all = { .request = "reconcile", .follow = rc->follow };

	crash_point("life.records-read");
	rc->asking = false;
	for (const struct pending *p = rc->found.first; p; p = p->next)
		rc->look_left += p->of_look;
	move_all(&rc->todo, &rc->found);
	if (job->failed && job->e.code == ERR_INTERNAL)
		log_event(LOG_ERROR, "sandbox records cannot be read", "why", job->e.msg, NULL);
	if (rc->unreadable < 0) { /* what could be read of it is done all the same */
		strv_done(&rc->read);
		rc->read = (struct strv){ 0 };
	} else { /* also if nothing could be taken as due: that is asked for every time */
		take_known(rc);
		rc->look_at_all = rc->look_failed = false;
		rc->listing = true;
		if (rc->follow)
			rc->caught_up = false;
		node_call(&rc->reactor->node, NODE_INVENTORY, &all, -1,
			  rc->follow ? &follow_events : &list_events, rc);
		rc->follow = false;
	}
	next(rc);
}

/* The backstop behind the alarms: everything is compared, even if nothing happened. */
static void sweep(struct reconcile *rc)
{
	uint64_t now = uv_now(&rc->reactor->loop);

	if (now < rc->sweep_ms)
		return;
	if (rc->sweep_ms && reconcile_looks(rc)) {
		rc->sweeps.skipped++;
		log_event(LOG_ERROR, "the sweep before this one has not finished", "do",
			  "see why berth-node or the database is slow", NULL);
	} else if (rc->sweep_ms) {
		reconcile_look(rc);
	}
	rc->sweep_ms = now + rc->sweeps.every_ms;
}

/* What is taken twice is begun once: its deadline was moved, or its version was. */
static void on_timer(uv_timer_t *timer)
{
	struct reconcile *rc = timer->data;

	sweep(rc);
	move_all(&rc->todo, &rc->later);
	next(rc);
	if (rc->asking || rc->todo.first || !rc->reactor->node.up ||
	    !lease_agent_runs(rc->reactor->berthd->lease_agent))
		return;
	if (rc->wanted && !rc->looking) {
		rc->look_at_all = true;
		rc->looking = true;
		rc->wanted = false;
	}
	rc->asking = true;
	/* One list at a time, and nothing is looked at twice at once. */
	rc->reads_all = rc->look_at_all && !rc->listing && rc->look_left == 0;
	rc->unreadable = -1; /* also if no worker can run the job */
	job_submit(rc->reactor, NULL, &rc->job, read_records, on_records);
}

static void on_node_up(struct node_link *link, void *data)
{
	struct reconcile *rc = data;

	(void)link;
	lease_agent_node_up(rc->reactor);
	rc->look_at_all = rc->follow = true;
	on_timer(&rc->timer);
}

void reconcile_look(struct reconcile *rc)
{
	rc->wanted = true;
}

struct reconcile_counts reconcile_counts(const struct reconcile *rc)
{
	return (struct reconcile_counts){ .cleaned = rc->cleaned, .skipped = rc->skipped };
}

bool reconcile_looks(const struct reconcile *rc)
{
	return rc->wanted || rc->looking;
}

struct reconcile_sweeps reconcile_sweeps(const struct reconcile *rc)
{
	return rc->sweeps;
}

struct reconcile *reconcile_new(struct reactor *r)
{
	unsigned divisor = (unsigned)r->berthd->settings.timer_divisor;
	uint64_t sweep_every = constant_ms(CONSTANT_SWEEP, divisor);
	struct reconcile *rc = xcalloc(1, sizeof(*rc));

	rc->reactor = r;
	rc->sweeps.every_ms = sweep_every < SWEEP_LEAST_MS ? SWEEP_LEAST_MS : sweep_every;
	rc->sweeps.finished_ms = uv_now(&r->loop);
	rc->sweeps.unreadable = -1;
	rc->found.last = &rc->found.first;
	rc->todo.last = &rc->todo.first;
	rc->later.last = &rc->later.first;
	uv_timer_init(&r->loop, &rc->timer);
	rc->timer.data = rc;
	return rc;
}

void reconcile_begin(struct reconcile *rc)
{
	struct reactor *r = rc->reactor;
	uint64_t every = DUE_EVERY_MS / r->berthd->settings.timer_divisor;

	if (every < DUE_LEAST_MS)
		every = DUE_LEAST_MS;
	uv_timer_start(&rc->timer, on_timer, every, every);
	r->node.on_up = on_node_up;
	r->node.data = rc;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct reconcile *rc = handle->data;
	struct pending *p;

	move_all(&rc->todo, &rc->found);
	move_all(&rc->todo, &rc->later);
	while ((p = take(&rc->todo)))
		free(p);
	strv_done(&rc->known);
	strv_done(&rc->read);
	free(rc);
}

void reconcile_end(struct reconcile *rc)
{
	rc->reactor->node.on_up = NULL;
	uv_close((uv_handle_t *)&rc->timer, on_timer_closed);
}

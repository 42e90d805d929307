#include "api/life/reconcile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/berthd.h"
#include "api/life/alarm.h"
#include "api/life/change.h"
#include "api/life/deletion.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/strv.h"

#define DUE_EVERY_MS   2000 /* divided like all times, but no more often than */
#define DUE_LEAST_MS   20
#define DUE_AGAIN_MS   30000 /* for whoever dies with it in hand */
#define DUE_AT_ONCE    50
#define SWEEP_LEAST_MS 3000
#define AT_WORK_MAX    16 /* changes under way at once; the rest wait their turn */

/* One sandbox that must be looked at, by its record or because berth-node has it. */
struct pending {
	struct reconcile *rc;
	struct sandbox sb; /* version 0: the record is not read yet */
	bool superseded;   /* the record is of a later generation */
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
	bool asking;  /* the job is under way */
	bool listing; /* berth-node is telling what it has */
	bool look_at_all;
	bool reads_all;               /* the job under way does; fixed when it was submitted */
	bool follow;                  /* a new link: berth-node has to tell what ends from now on */
	_Atomic bool wanted, looking; /* somebody asked for a look at everything; it is under way */
	uint64_t sweep_ms;            /* when the next sweep is due; 0: none was planned yet */
	struct strv known;            /* the ids of all records, when they were read; sorted */
	struct queue found;           /* by the job, on its worker */
	struct queue todo;
	size_t at_work;
};

static void next(struct reconcile *rc);

static void add(struct reconcile *rc, struct queue *q, const struct sandbox *sb,
		void (*begin)(struct pending *))
{
	struct pending *p = xcalloc(1, sizeof(*p));

	p->rc = rc;
	p->sb = *sb;
	p->begin = begin;
	*q->last = p;
	q->last = &p->next;
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

static void finished(struct pending *p)
{
	struct reconcile *rc = p->rc;

	free(p);
	rc->at_work--;
	next(rc);
}

static void on_changed(struct change *c, const struct err *why)
{
	struct pending *p = c->data;

	if (why)
		log_event(LOG_WARN, "reconcile", "sandbox", c->sb.id, "why", why->msg, NULL);
	change_free(c);
	finished(p);
}

static void change(struct pending *p, enum sandbox_event ev, const char *reason)
{
	struct change *c = change_new(p->rc->reactor, "reconcile");

	c->sb = p->sb;
	c->data = p;
	change_event(c, ev, reason, on_changed);
}

/* Only what the kernel said becomes an event; unknown changes nothing. */
static void on_observed(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct pending *p = data;
	const struct node_observation *o = &record->observation;

	(void)fd;
	crash_point("life.looked-at");
	if (why || o->process == PRESENCE_UNKNOWN)
		return finished(p);
	if (p->sb.state == SANDBOX_READY && o->ready) {
		places_put(&p->rc->reactor->berthd->places, &p->sb);
		return finished(p);
	}
	if (o->process == PRESENCE_ABSENT &&
	    (p->sb.state == SANDBOX_ASLEEP || p->sb.state == SANDBOX_FAILED))
		return finished(p); /* as it should be: nothing new */
	if (o->process == PRESENCE_PRESENT)
		return change(p, EV_SEEN, NULL);
	change(p, EV_ABSENT, p->sb.state == SANDBOX_READY ? "its processes ended" : NULL);
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
	struct change *c = change_new(p->rc->reactor, "alarm");

	c->sb = p->sb;
	c->data = p;
	alarm_ring(c, on_changed);
}

/* A deletion whose time has come. Also while its attempt is under way: that has a deadline. */
static void climb(struct pending *p)
{
	struct change *c = change_new(p->rc->reactor, "reconcile");

	c->sb = p->sb;
	c->data = p;
	deletion_go_on(c, on_changed);
}

/* Whoever had begun an attempt and did not end it is gone, and its answer with it. */
static void give_up(struct pending *p)
{
	struct change *c = change_new(p->rc->reactor, "reconcile");

	c->sb = p->sb;
	c->data = p;
	deletion_lost(c, on_changed);
}

/* ---- what berth-node has and no record of this host names ---- */

struct ghost {
	struct job job;
	struct pending *p;
};

static void on_ghost_destroyed(void *data, const union node_any *record, int *fd,
			       const struct err *why)
{
	struct pending *p = data;

	(void)record, (void)fd;
	crash_point("life.ghost-destroyed");
	log_event(LOG_WARN, why ? "a ghost could not be destroyed" : "a ghost was destroyed",
		  "sandbox", p->sb.id, "why", why ? why->msg : NULL, NULL);
	finished(p);
}

static const struct node_call_events ghost_events = { .on_done = on_ghost_destroyed };

static int read_ghost(struct job *job, struct store *s, struct err *e)
{
	struct pending *p = container_of(job, struct ghost, job)->p;
	struct sandbox sb;

	if (store_sandbox_get(s, NULL, p->sb.id, &sb, e) < 0)
		return -1;
	p->sb.state = sb.state;
	p->superseded = sb.generation > p->sb.generation;
	return 0;
}

/*
 * Only a tombstone, or a record of a later generation, proves that nobody wants
 * it. Everything else is left alone and told.
 */
static void on_ghost_read(struct job *job)
{
	struct ghost *g = container_of(job, struct ghost, job);
	struct pending *p = g->p;
	struct node_target t = { .request = "reconcile", .generation = p->sb.generation };
	bool gone = !job->failed && (p->sb.state == SANDBOX_GONE || p->superseded);

	if (job->failed)
		log_event(LOG_WARN, "berth-node has a sandbox no record names: left alone",
			  "sandbox", p->sb.id, "why", job->e.msg, NULL);
	free(g);
	if (!gone)
		return finished(p);
	memcpy(t.sandbox, p->sb.id, sizeof(t.sandbox));
	node_call(&p->rc->reactor->node, NODE_DESTROY, &t, -1, &ghost_events, p);
}

static void look_for_record(struct pending *p)
{
	struct ghost *g = xcalloc(1, sizeof(*g));

	g->p = p;
	g->job = (struct job){
		.reactor = p->rc->reactor,
		.run = read_ghost,
		.done = on_ghost_read,
	};
	worker_submit(&p->rc->reactor->berthd->workers, &g->job);
}

static void on_ended(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct pending *p = data;

	(void)fd;
	crash_point("life.rest-ended");
	if (why || record->observation.process != PRESENCE_ABSENT)
		return finished(p); /* not seen gone: the next use, or restart, looks again */
	change(p, EV_ABSENT, "its processes ended");
}

static const struct node_call_events ended_events = { .on_done = on_ended };

/* Its first process ended by itself. What an engine leaves behind is ended too, and looked at. */
static void has_ended(struct pending *p)
{
	struct node_stop stop = { .request = "reconcile", .generation = p->sb.generation };

	memcpy(stop.sandbox, p->sb.id, sizeof(stop.sandbox));
	node_call(&p->rc->reactor->node, NODE_STOP, &stop, -1, &ended_events, p);
}

static int by_id(const void *id, const void *item)
{
	return strcmp(id, *(char *const *)item);
}

static bool is_known(const struct reconcile *rc, const char *id)
{
	return rc->known.len > 0 &&
	       bsearch(id, rc->known.items, rc->known.len, sizeof(*rc->known.items), by_id);
}

static void on_inventory_item(void *data, const union node_any *part)
{
	struct reconcile *rc = data;
	struct sandbox sb = { .generation = part->observation.generation };

	memcpy(sb.id, part->observation.sandbox, sizeof(sb.id));
	if (!sb.id[0]) { /* the list is through; what comes now is news */
		rc->listing = false;
		crash_point("life.inventory-read");
		return next(rc);
	}
	if (!rc->listing) {
		add(rc, &rc->todo, &sb, has_ended);
		return next(rc);
	}
	if (!is_known(rc, sb.id)) /* memory is no proof: the database is asked */
		add(rc, &rc->todo, &sb, look_for_record);
}

static void on_inventory(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct reconcile *rc = data;

	(void)record, (void)fd, (void)why; /* the link broke: all again when it is up */
	rc->listing = false;
	next(rc);
}

static const struct node_call_events inventory_events = {
	.on_part = on_inventory_item,
	.on_done = on_inventory,
};

static void next(struct reconcile *rc)
{
	while (rc->todo.first && rc->at_work < AT_WORK_MAX) {
		struct pending *p = take(&rc->todo);

		if (p->begin != climb && changing_has(&rc->reactor->berthd->changing, p->sb.id)) {
			free(p); /* whoever is at it also ends it */
			continue;
		}
		rc->at_work++;
		p->begin(p);
	}
	if (!rc->asking && !rc->listing && !rc->look_at_all && !rc->todo.first && !rc->at_work)
		rc->looking = false;
}

static void take_row(const struct sandbox *sb, void *arg)
{
	struct reconcile *rc = arg;
	struct moment at = {
		.now_ms = sb->read_ms,
		.divisor = (unsigned)rc->reactor->berthd->settings.timer_divisor,
	};

	places_put(&rc->reactor->berthd->places, sb);
	strv_add(&rc->known, sb->id); /* they come in the order of strcmp() */
	if (sb->state != SANDBOX_DELETING)
		add(rc, &rc->found, sb, look);
	else if (sb->stop.state == STOP_STOPPING)
		add(rc, &rc->found, sb, give_up);
	else if (stop_is_misdated(&sb->stop, &at))
		add(rc, &rc->found, sb, climb);
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
				   .limit = DUE_AT_ONCE,
				   .again_ms = DUE_AGAIN_MS };

	if (rc->reads_all) {
		strv_done(&rc->known);
		rc->known = (struct strv){ 0 };
	}
	if (rc->reads_all && store_sandboxes_of_host(s, host, take_row, rc, e) < 0)
		return -1;
	return store_sandboxes_due(s, &due, take_due, rc, e);
}

static void on_records(struct job *job)
{
	struct reconcile *rc = container_of(job, struct reconcile, job);
	struct node_cursor all = { .request = "reconcile", .follow = rc->follow };
	struct pending *p;

	crash_point("life.records-read");
	rc->asking = false;
	while ((p = take(&rc->found))) {
		*rc->todo.last = p;
		rc->todo.last = &p->next;
	}
	if (!job->failed && rc->reads_all) {
		rc->look_at_all = false;
		rc->follow = false;
		rc->listing = true;
		node_call(&rc->reactor->node, NODE_INVENTORY, &all, -1, &inventory_events, rc);
	}
	next(rc);
}

/* The backstop behind the alarms: everything is compared, even if nothing happened. */
static void sweep(struct reconcile *rc)
{
	unsigned divisor = (unsigned)rc->reactor->berthd->settings.timer_divisor;
	uint64_t every = constant_ms(CONSTANT_SWEEP, divisor), now = uv_now(&rc->reactor->loop);

	if (now < rc->sweep_ms)
		return;
	if (rc->sweep_ms && reconcile_looks(rc))
		log_event(LOG_ERROR, "the sweep before this one has not finished", "do",
			  "see why berth-node or the database is slow", NULL);
	else if (rc->sweep_ms)
		reconcile_look(rc);
	rc->sweep_ms = now + (every < SWEEP_LEAST_MS ? SWEEP_LEAST_MS : every);
}

/* What is taken twice is begun once: its deadline was moved, or its version was. */
static void on_timer(uv_timer_t *timer)
{
	struct reconcile *rc = timer->data;

	sweep(rc);
	if (rc->asking || rc->todo.first || !rc->reactor->node.up ||
	    !host_keeper_runs(rc->reactor->berthd->keeper))
		return;
	if (rc->wanted) {
		rc->look_at_all = true;
		rc->looking = true;
		rc->wanted = false;
	}
	if (rc->look_at_all && rc->at_work > 0)
		return;
	rc->asking = true;
	rc->reads_all = rc->look_at_all;
	rc->job = (struct job){ .reactor = rc->reactor, .run = read_records, .done = on_records };
	worker_submit(&rc->reactor->berthd->workers, &rc->job);
}

static void on_node_up(struct node_link *link, void *data)
{
	struct reconcile *rc = data;

	(void)link;
	host_keeper_node_up(rc->reactor);
	rc->look_at_all = rc->follow = true;
	on_timer(&rc->timer);
}

void reconcile_look(struct reconcile *rc)
{
	rc->wanted = true;
}

bool reconcile_looks(const struct reconcile *rc)
{
	return rc->wanted || rc->looking;
}

struct reconcile *reconcile_begin(struct reactor *r)
{
	struct reconcile *rc = xcalloc(1, sizeof(*rc));
	uint64_t every = DUE_EVERY_MS / r->berthd->settings.timer_divisor;

	if (every < DUE_LEAST_MS)
		every = DUE_LEAST_MS;
	rc->reactor = r;
	rc->found.last = &rc->found.first;
	rc->todo.last = &rc->todo.first;
	uv_timer_init(&r->loop, &rc->timer);
	rc->timer.data = rc;
	uv_timer_start(&rc->timer, on_timer, every, every);
	r->node.on_up = on_node_up;
	r->node.data = rc;
	return rc;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct reconcile *rc = handle->data;
	struct pending *p;

	while ((p = take(&rc->todo)) || (p = take(&rc->found)))
		free(p);
	strv_done(&rc->known);
	free(rc);
}

void reconcile_end(struct reconcile *rc)
{
	rc->reactor->node.on_up = NULL;
	uv_close((uv_handle_t *)&rc->timer, on_timer_closed);
}

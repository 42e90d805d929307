#include "berthd/control/transition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/host-lease.h"
#include "berthd/control/create-spec.h"
#include "berthd/control/deadline.h"
#include "berthd/control/guest.h"
#include "berthd/control/inflight.h"
#include "berthd/control/limits.h"
#include "berthd/control/reconcile.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/journal/gone.h"
#include "berthd/netpolicy/policy-sync.h"
#include "berthd/netpolicy/vault.h"
#include "berthd/runtime/berthd.h"
#include "berthd/runtime/bus.h"
#include "berthd/runtime/error-json.h"
#include "core/alarm.h"
#include "lib/crash.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"
#include "proto/frame.h"

#define MOVE_TRIES 4
#define PAUSE_MS   100
#define PAUSES_MAX 300

struct transition *transition_new(struct reactor *r, const char *request)
{
	struct transition *c = xcalloc(1, sizeof(*c));

	c->reactor = r;
	c->read_mono_ms = time_mono_ms();
	(void)!str_copy(c->request, sizeof(c->request), request);
	return c;
}

static void unmark(struct transition *c)
{
	if (c->marked[0])
		inflight_remove(c->reactor->berthd->inflight, c->marked);
	c->marked[0] = '\0';
}

void transition_free(struct transition *c)
{
	unmark(c);
	free(c->asked);
	free(c->network);
	free(c);
}

void transition_mark(struct transition *c)
{
	unmark(c); /* tried again, or it was found to be another's */
	memcpy(c->marked, c->sb.id, sizeof(c->marked));
	inflight_add(c->reactor->berthd->inflight, c->marked);
}

static void publish(struct berthd *b, const struct sandbox *sb)
{
	cleanup(buf_done) struct buf json = buf_make(4096);
	char now[TIME_TEXT_SIZE];

	time_text(time_wall_ms(), now);
	json_open(&json, '{');
	json_str(&json, "at", now);
	json_str(&json, "id", sb->id);
	json_str(&json, "state", sandbox_state_name(sb->state));
	json_str(&json, "reason", sb->reason);
	buf_adds(&json, "}");
	bus_publish(b, &(struct bus_event){ .name = "sandbox",
					    .owner = sb->owner,
					    .json = buf_str(&json) });
}

/* Every change of state passes here: remembered, told to followers, one line in the log. */
static void announce(struct transition *c)
{
	struct berthd *b = c->reactor->berthd;

	if (c->sb.state == SANDBOX_GONE)
		sandbox_cache_forget(b->sandboxes, c->sb.id);
	else
		sandbox_cache_put(b->sandboxes, &c->sb);
	if (c->sb.state == SANDBOX_GONE)
		b->disk_freed_ms = time_mono_ms();
	if (c->sb.state != SANDBOX_READY && c->sb.state != SANDBOX_CREATING &&
	    c->sb.state != SANDBOX_WAKING)
		egress_drop(b->egress, c->sb.id, c->sb.generation);
	log_event(LOG_INFO, "sandbox moved", "sandbox", c->sb.id, "state",
		  sandbox_state_name(c->sb.state), "event", c->event,
		  "request_id", c->request, "why", c->sb.reason[0] ? c->sb.reason : NULL, NULL);
	publish(b, &c->sb);
	crash_point("life.announced");
}

void alert_tell(struct berthd *b, const struct alert *a, const char *request, const char *todo)
{
	cleanup(buf_done) struct buf json = buf_make(4096);
	char now[TIME_TEXT_SIZE];

	time_text(time_wall_ms(), now);
	json_open(&json, '{');
	json_str(&json, "at", now);
	json_str(&json, "level", "critical");
	json_str(&json, "kind", a->kind);
	json_str(&json, "sandbox", a->sandbox);
	json_str(&json, "subject", a->subject);
	json_str(&json, "message", a->message);
	buf_adds(&json, "}");
	bus_publish(b, &(struct bus_event){ .name = "alert",
					    .owner = a->owner,
					    .json = buf_str(&json) });
	log_event(LOG_ERROR, "alert raised", "kind", a->kind, "sandbox", a->sandbox, "subject",
		  a->subject[0] ? a->subject : NULL, "why", a->message, "request_id", request,
		  "do", todo, NULL);
}

static int write_event(struct job *job, struct store *s, struct err *e);

/*
 * A fact was not written: a look that our mark turned away relied on us. Looked at again, but if
 * nothing can be written only when it can: health asks for that.
 */
static void not_written(const struct transition *c)
{
	if (c->job.run == write_event && sandbox_event_is_fact(c->ev) &&
	    (c->job.e.code == ERR_BUSY || c->job.e.code == ERR_CONFLICT) &&
	    !store_is_unwritable(&c->job.e))
		reconcile_look(c->reactor->berthd->reconcile);
}

static void on_written(struct job *job)
{
	struct transition *c = container_of(job, struct transition, job);

	if (job->failed) {
		not_written(c);
		/* What is remembered may be of before: another host may have it by now. */
		sandbox_cache_forget(c->reactor->berthd->sandboxes, c->sb.id);
		return c->next(c, &job->e);
	}
	if (c->wrote)
		announce(c);
	else if (c->sb.state == SANDBOX_GONE)
		sandbox_cache_forget(c->reactor->berthd->sandboxes, c->sb.id);
	c->next(c, NULL);
}

/* The owner of the request or, if no request waits, of the sandbox. */
static const char *owner_of(const struct transition *c)
{
	return c->owner ? c->owner : c->sb.owner;
}

void transition_write(struct transition *c, int (*run)(struct job *, struct store *, struct err *),
		      transition_fn *next)
{
	c->next = next;
	c->wrote = false;
	job_submit(c->reactor, owner_of(c), &c->job, run, on_written);
}

static int write_intent(struct job *job, struct store *s, struct err *e)
{
	return create_spec_write(container_of(job, struct transition, job), s, e);
}

uint64_t transition_deadline_ms(const struct transition *c, enum sandbox_state to)
{
	struct alarm_rules rules = deadline_rules_of(c);
	uint64_t ms = lifecycle_deadline_ms(to, rules.divisor);
	uint64_t now = c->sb.read_ms + (time_mono_ms() - c->read_mono_ms);
	struct sandbox sb = c->sb;
	struct alarm next;

	if (ms > 0)
		return ms;
	if (to != sb.state) { /* what begins is used now */
		sb.last_used_ms = now;
		sb.busy_ms = 0;
	}
	sb.state = to;
	next = alarm_of(&sb, &rules, now);
	if (next.kind == ALARM_NONE)
		return 0;
	return next.at_ms > now ? next.at_ms - now : 1;
}

/* What this host sees of a sandbox of another one says nothing about it. */
static bool is_elsewhere(const struct transition *c)
{
	return c->sb.state != SANDBOX_GONE &&
	       strcmp(c->sb.host, c->reactor->berthd->settings.host) != 0;
}

/*
 * Its wrappers ended with it: those that were there, if the record is still the one that
 * it was seen of. In another life they would have other execs.
 */
static void end_wrappers(const struct transition *c, struct store *s)
{
	cleanup(strv_done) struct strv execs = { 0 };
	struct berthd *b = c->reactor->berthd;
	struct sandbox now;
	struct err ignored;

	journals_wrappers(b->journals, c->sb.id, &execs);
	if (execs.len > 0 && store_sandbox_get(s, NULL, c->sb.id, &now, &ignored) == 0 &&
	    now.version == c->sb.version)
		journals_mark_gone(b->journals, c->sb.id, &execs);
}

/* What the event means for the record as it is now; again if another writer was faster. */
static int write_event(struct job *job, struct store *s, struct err *e)
{
	struct transition *c = container_of(job, struct transition, job);
	cleanup(buf_done) struct buf told = buf_make(IDEMPOTENCY_RESPONSE_MAX);
	struct idempotency_answer answer = { .use = &c->use };
	uint64_t seen_of = c->sb.generation; /* 0: whichever it is */
	bool read_before = c->sb.version != 0;
	struct sandbox_move move;

	if (c->ev == EV_BROKEN && c->use.key[0]) { /* the same to a request that repeats it */
		error_json(c->request, &c->why, &told);
		answer.status = err_http_status(c->why.code);
		answer.response = buf_str(&told);
	}
	for (int i = 0; i < MOVE_TRIES; i++) {
		if ((i > 0 || c->sb.version == 0) &&
		    store_sandbox_get(s, c->owner, c->sb.id, &c->sb, e) < 0)
			return -1;
		if (is_elsewhere(c))
			return err_set(e, ERR_BUSY, "%s lives on host %s now", c->sb.id,
				       c->sb.host);
		if (seen_of && c->sb.generation != seen_of)
			return err_set(e, ERR_CONFLICT, "%s is of another generation by now",
				       c->sb.id);
		if (lifecycle_step(c->sb.state, c->ev, &c->step, e) < 0)
			return -1;
		if (c->sb.state == SANDBOX_GONE || c->step.to == SANDBOX_GONE)
			return 0; /* erasing is another transaction */
		if (c->sb.state == SANDBOX_DELETING) {
			c->step.action = ACT_NONE; /* the ladder stands, and ends it: deletion.c */
			return 0;
		}
		if ((c->ev == EV_ABSENT || c->ev == EV_REMOVED) && i == 0 && read_before)
			end_wrappers(c, s);
		if (i > 0)
			c->read_mono_ms = time_mono_ms();
		move = (struct sandbox_move){
			.id = c->sb.id,
			.generation = c->sb.generation,
			.version = c->sb.version,
			.from = c->sb.state,
			.to = c->step.to,
			.event = c->event,
			.reason = c->why.msg[0] ? c->why.msg : NULL,
			.deadline_ms = transition_deadline_ms(c, c->step.to),
			.guest = c->ev == EV_UP && c->seen.protocol == FRAME_VERSION
					 ? FRAME_VERSION
					 : 0,
			.answer = answer.response && c->step.to == SANDBOX_FAILED ? &answer : NULL,
		};
		c->wrote = store_sandbox_move(s, &move, &c->sb, e) == 0;
		c->read_mono_ms = time_mono_ms();
		if (c->wrote)
			crash_point("life.event-written");
		if (c->wrote)
			return 0;
		if (e->code != ERR_CONFLICT || c->strict)
			return -1;
	}
	return err_set(e, ERR_BUSY, "%s is being changed by other requests", c->sb.id);
}

static void record_event(struct transition *c, enum sandbox_event ev, transition_fn *next)
{
	c->ev = ev;
	c->event = sandbox_event_name(ev);
	transition_write(c, write_event, next);
}

void transition_target(const struct transition *c, struct node_target *t)
{
	*t = (struct node_target){ .generation = c->sb.generation, .epoch = c->epoch };
	memcpy(t->request, c->request, sizeof(t->request));
	memcpy(t->sandbox, c->sb.id, sizeof(t->sandbox));
}

/*
 * ---- bringing it up ----
 *
 * A create, a build that is taken up again, and a wake: once the record says so, these are the
 * steps. Each ends with up_next(), or with broken(): then the record says failed, and what was made
 * is destroyed (of one that was woken: stopped, its files stay).
 */

enum up_step {
	UP_BUILD,
	UP_START,
	UP_GUEST,
	UP_EGRESS,
	UP_RECORD,
	UP_STEP_COUNT
};

static void up_build(struct transition *c);
static void up_start(struct transition *c);
static void up_guest(struct transition *c);
static void up_egress(struct transition *c);
static void up_record(struct transition *c);

/* clang-format off */
static void (*const up_steps[UP_STEP_COUNT])(struct transition *c) = {
	[UP_BUILD]	= up_build,	/* berth-node: its disk, limits and address */
	[UP_START]	= up_start,	/* berth-node: its link, engine and init's hello */
	[UP_GUEST]	= up_guest,	/* the record: its init is of another version */
	[UP_EGRESS]	= up_egress,	/* berth-egress: what it may reach; until then nothing */
	[UP_RECORD]	= up_record,	/* the record: ready, or what it has become meanwhile */
};
/* clang-format on */

static void up_next(struct transition *c)
{
	up_steps[c->up_step++](c);
}

static void bring_up(struct transition *c)
{
	c->up_step = UP_BUILD;
	up_next(c);
}

static void after_destroyed(void *data, const union node_any *record, int *fd,
			    const struct err *why)
{
	struct transition *c = data;

	(void)record, (void)fd;
	crash_point("life.half-destroyed");
	if (why) /* the next sweep does it, or the owner's delete */
		log_event(LOG_WARN, "cleanup after a failed create failed", "sandbox", c->sb.id,
			  "why", why->msg, "request_id", c->request, NULL);
	c->done(c, &c->why);
}

static const struct node_call_events destroyed_events = { .on_done = after_destroyed };

static void end_processes(struct transition *c)
{
	struct node_stop stop = { .generation = c->sb.generation };

	memcpy(stop.request, c->request, sizeof(stop.request));
	memcpy(stop.sandbox, c->sb.id, sizeof(stop.sandbox));
	node_call(&c->reactor->node, NODE_STOP, &stop, -1, &destroyed_events, c);
}

static void after_broken(struct transition *c, const struct err *why)
{
	struct node_target t;

	if (!why && (c->sb.state == SANDBOX_DELETING || c->sb.state == SANDBOX_GONE)) {
		err_set(&c->why, ERR_CONFLICT, "%s was deleted meanwhile", c->sb.id);
		return c->done(c, &c->why); /* its deletion also removes this */
	}
	if (why) /* it goes on elsewhere, or is not known: a client that asks again will hear */
		err_set(&c->why, ERR_BUSY, "%s", why->msg);
	if (c->woken)
		return end_processes(c); /* its files stay */
	transition_target(c, &t);        /* written or not: what is there is of no use */
	node_call(&c->reactor->node, NODE_DESTROY, &t, -1, &destroyed_events, c);
}

/* Stopped for long enough, this host was taken over: what it meant to start runs elsewhere. */
static bool is_overtaken(struct transition *c)
{
	struct err e;

	if (lease_agent_epoch(c->reactor->berthd->lease_agent) == c->epoch)
		return false;
	err_set(&e, ERR_BUSY, "this host was taken over by another meanwhile");
	err_fix(&e, "Try again: what was begun here goes on on another host.");
	c->done(c, &e);
	return true;
}

struct pause {
	uv_timer_t timer;
	struct transition *c;
};

static void on_pause_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_pause_over(uv_timer_t *timer)
{
	struct pause *p = timer->data;
	struct transition *c = p->c;

	uv_close((uv_handle_t *)timer, on_pause_closed);
	c->up_step = UP_START;
	up_next(c);
}

/*
 * When it is built again, or by another berthd of this host at the same time,
 * berth-node may still be at what was asked for before: no reason to give the
 * sandbox up. It is asked to start it, never to build it:
 * that could bring back one that was deleted meanwhile.
 */
static bool still_at_it(struct transition *c, const struct err *why)
{
	struct pause *p;

	if (why->code != ERR_BUSY || node_unanswered(why) || !c->reactor->node.up ||
	    c->pauses == PAUSES_MAX)
		return false;
	c->pauses++;
	p = xcalloc(1, sizeof(*p));
	p->c = c;
	uv_timer_init(&c->reactor->loop, &p->timer);
	p->timer.data = p;
	uv_timer_start(&p->timer, on_pause_over, PAUSE_MS, 0);
	return true;
}

/*
 * berthd does not know what berth-node has done of it: no reason to call it broken,
 * if a client or a look comes back for it. The next look builds it again, or its deadline ends it.
 */
static bool is_taken_up_later(const struct transition *c, const struct err *why)
{
	return why->code == ERR_BUSY &&
	       (c->use.key[0] || c->step.action == ACT_BUILD || c->step.action == ACT_WAKE);
}

static void broken(struct transition *c, const struct err *why)
{
	if (still_at_it(c, why))
		return;
	if (is_taken_up_later(c, why))
		return c->done(c, why);
	c->why = *why;
	if (!c->woken && why->code == ERR_NOT_FOUND) /* here, by now; there is such an image */
		err_set(&c->why, ERR_BUSY, "%s", why->msg);
	err_wrap(&c->why, "sandbox %s could not be started", c->sb.id);
	if (c->use.key[0])
		err_fix(&c->why, "This is its key's answer for good: try again with a new one.");
	record_event(c, EV_BROKEN, after_broken);
}

static void on_built(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct transition *c = data;

	(void)record, (void)fd;
	if (why)
		return broken(c, why);
	crash_point("life.built");
	up_next(c);
}

static const struct node_call_events built_events = { .on_done = on_built };

static void up_build(struct transition *c)
{
	struct node_create ask = {
		.generation = c->sb.generation,
		.epoch = c->epoch,
		.limits = limits_of_node(&c->sb.limits),
		.keep_disk = c->step.action == ACT_WAKE,
	};

	cleanup(buf_done) struct buf trust = buf_make(NODE_TRUST_SIZE);
	struct err e;

	crash_point("life.before-build");
	if (is_overtaken(c))
		return;
	memcpy(ask.request, c->request, sizeof(ask.request));
	memcpy(ask.sandbox, c->sb.id, sizeof(ask.sandbox));
	memcpy(ask.image, c->sb.image_digest, sizeof(c->sb.image_digest));
	memcpy(ask.runtime, c->sb.runtime, sizeof(ask.runtime));
	if (vault_trust(c->reactor->berthd->vault, c->sb.id, &trust, &e) < 0 ||
	    !str_copy(ask.trust, sizeof(ask.trust), buf_str(&trust)))
		log_event(LOG_ERROR, "CA of a sandbox cannot be made", "sandbox", c->sb.id, NULL);
	node_call(&c->reactor->node, NODE_CREATE, &ask, -1, &built_events, c);
}

static void on_started(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct transition *c = data;

	(void)fd;
	if (why)
		return broken(c, why);
	crash_point("life.started");
	c->seen = record->observation;
	up_next(c);
}

static const struct node_call_events started_events = { .on_done = on_started };

static void up_start(struct transition *c)
{
	struct node_target t;

	if (is_overtaken(c))
		return;
	transition_target(c, &t);
	node_call(&c->reactor->node, NODE_START, &t, -1, &started_events, c);
}

/* Not written: the next sweep sees it again. */
static void on_guest_recorded(void *data, const struct sandbox *sb, const struct err *why)
{
	struct transition *c = data;

	if (!why) {
		c->sb = *sb;
		c->read_mono_ms = time_mono_ms();
	}
	up_next(c);
}

/* One of our version is written with the state. */
static void up_guest(struct transition *c)
{
	struct guest_versions seen = guest_seen(&c->seen);

	if (guest_compare(seen.guest, seen.host) == GUEST_CURRENT ||
	    !guest_is_news(c->sb.guest, seen))
		return up_next(c);
	guest_record(c->reactor, &c->sb, seen, on_guest_recorded, c);
}

/* Whether it is in force or not: until it is, nothing leaves the sandbox. */
static void on_egress_told(void *data)
{
	up_next(data);
}

static void up_egress(struct transition *c)
{
	struct policy_sync *egress = c->reactor->berthd->egress;
	uint32_t address;

	if (network_address_read(c->seen.address, &address))
		egress_put(egress, c->sb.id, c->sb.generation, address, false);
	egress_tell(egress, c->sb.id, c->reactor, on_egress_told, c);
}

static void act(struct transition *c, const struct err *why);

static void up_record(struct transition *c)
{
	record_event(c, EV_UP, act); /* too late, it is ended again */
}

static void on_intent_written(struct transition *c, const struct err *why)
{
	if (why || c->found)
		return c->done(c, why);
	bring_up(c);
}

void transition_create(struct transition *c, transition_fn *done)
{
	struct err e;

	c->done = done;
	if (lease_agent_check(c->reactor->berthd->lease_agent, &e) < 0)
		return done(c, &e);
	c->epoch = lease_agent_epoch(c->reactor->berthd->lease_agent);
	transition_mark(c);
	c->event = "create";
	transition_write(c, write_intent, on_intent_written);
}

/* ---- events after the create ---- */

static void after_node(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct transition *c = data;

	(void)record, (void)fd;
	c->done(c, why);
}

static const struct node_call_events after_events = { .on_done = after_node };

static void act_none(struct transition *c)
{
	c->done(c, NULL);
}

static void act_wake(struct transition *c)
{
	c->woken = true;
	bring_up(c);
}

static void on_sleep_written(struct transition *c, const struct err *why)
{
	c->done(c, why);
}

/* Seen gone, or not known: then the record's own deadline tries again. */
static void on_put_to_sleep(void *data, const union node_any *record, int *fd,
			    const struct err *why)
{
	struct transition *c = data;
	struct err e;

	(void)fd;
	crash_point("life.put-to-sleep");
	/* After a restart of the machine there is no record, and nothing that could run. */
	if (why && why->code != ERR_NOT_FOUND)
		return c->done(c, why);
	if (!why && record->observation.process != PRESENCE_ABSENT) {
		err_set(&e, ERR_BUSY, "%s: its processes are %s", c->sb.id,
			presence_name(record->observation.process));
		return c->done(c, &e);
	}
	record_event(c, EV_ABSENT, on_sleep_written);
}

static const struct node_call_events sleep_events = { .on_done = on_put_to_sleep };

/* TERM; looked at all the while; KILL when the last of the three times has passed. */
static void act_sleep(struct transition *c)
{
	unsigned divisor = (unsigned)c->reactor->berthd->settings.timer_divisor;
	struct node_stop stop = {
		.generation = c->sb.generation,
		.grace_ms = (uint32_t)(constant_ms(CONSTANT_OBSERVE_1, divisor) +
				       constant_ms(CONSTANT_OBSERVE_2, divisor) +
				       constant_ms(CONSTANT_OBSERVE_3, divisor)),
		.life = c->seen.life,
	};

	memcpy(stop.request, c->request, sizeof(stop.request));
	memcpy(stop.sandbox, c->sb.id, sizeof(stop.sandbox));
	node_call(&c->reactor->node, NODE_STOP, &stop, -1, &sleep_events, c);
}

static void act_stop(struct transition *c)
{
	struct node_stop stop = { .generation = c->sb.generation, .life = c->seen.life };

	memcpy(stop.request, c->request, sizeof(stop.request));
	memcpy(stop.sandbox, c->sb.id, sizeof(stop.sandbox));
	node_call(&c->reactor->node, NODE_STOP, &stop, -1, &after_events, c);
}

static void act_destroy(struct transition *c)
{
	struct node_target t;

	transition_target(c, &t);
	node_call(&c->reactor->node, NODE_DESTROY, &t, -1, &after_events, c);
}

/* clang-format off */
static void (*const actions[SANDBOX_ACTION_COUNT])(struct transition *c) = {
	[ACT_NONE]	= act_none,
	[ACT_BUILD]	= bring_up,
	[ACT_SLEEP]	= act_sleep,
	[ACT_WAKE]	= act_wake,
	[ACT_STOP]	= act_stop,
	[ACT_DESTROY]	= act_destroy,
	[ACT_REPORT]	= act_none, /* every change is reported: announce() */
};
/* clang-format on */

static void act(struct transition *c, const struct err *why)
{
	if (why)
		return c->done(c, why);
	actions[c->step.action](c);
}

void transition_event(struct transition *c, enum sandbox_event ev, const char *reason,
		      transition_fn *done)
{
	c->done = done;
	c->epoch = lease_agent_epoch(c->reactor->berthd->lease_agent);
	transition_mark(c);
	c->strict = c->sb.version != 0;
	c->why.msg[0] = '\0';
	if (reason)
		snprintf(c->why.msg, sizeof(c->why.msg), "%s", reason);
	record_event(c, ev, act);
}

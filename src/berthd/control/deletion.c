#include "berthd/control/deletion.h"

#include <stdio.h>
#include <string.h>

#include "berthd/control/usage-sampler.h"
#include "berthd/journal/gone.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/usage.h"

#define ASK_TRIES 4

/* The database's clock, carried on from when the record was read. */
static struct moment moment_now(const struct transition *c)
{
	return (struct moment){
		.now_ms = c->sb.read_ms + (time_mono_ms() - c->read_mono_ms),
		.divisor = (unsigned)c->reactor->berthd->settings.timer_divisor,
		.jitter = (double)(id_number() % 1024) / 1024,
	};
}

/* ---- writing ---- */

/* One step of the ladder; the change remembers what is to be done, and under which attempt. */
static int step(struct transition *c, struct stop *stop, enum stop_event ev, struct err *e)
{
	struct moment now = moment_now(c);
	struct stop_input in = { .event = ev, .attempt = c->attempt, .text = c->why.msg };

	if (ev == STOP_BEGIN || ev == STOP_RECHECK)
		in.attempt = c->attempt = id_number();
	if (stop_apply(stop, &in, &now, &c->action, e) < 0)
		return -1;
	c->event = c->action == STOP_ACT_ALERT ? "quarantined" : stop_event_name(ev);
	return 0;
}

static struct alert alert_of(const struct transition *c, const char *why)
{
	struct alert a = { .kind = "deletion_quarantined" };

	memcpy(a.sandbox, c->sb.id, sizeof(a.sandbox));
	memcpy(a.owner, c->sb.owner, sizeof(a.owner));
	memcpy(a.host, c->sb.host, sizeof(a.host));
	(void)!str_copy(a.message, sizeof(a.message), why);
	return a;
}

/* Only from the version that was read: who was faster has begun another step. */
static int store_step(struct transition *c, struct store *s, const struct stop *stop, struct err *e)
{
	uint64_t now = moment_now(c).now_ms, then = stop_deadline_ms(stop);
	struct sandbox_move move = {
		.id = c->sb.id,
		.generation = c->sb.generation,
		.version = c->sb.version,
		.from = c->sb.state,
		.to = SANDBOX_DELETING,
		.event = c->event,
		.attempt = c->attempt,
		.reason = stop->last_error,
		.stop = stop,
		.deadline_ms = then > now ? then - now : 1,
	};

	if (c->action == STOP_ACT_ALERT) {
		struct alert a = alert_of(c, stop->last_error);

		if (store_alert_raise(s, &a, e) < 0)
			return -1;
	}
	if (store_sandbox_move(s, &move, &c->sb, e) < 0)
		return -1;
	c->read_mono_ms = time_mono_ms();
	c->wrote = true;
	return 0;
}

/* The first attempt is begun with the wish itself: one transaction. */
static int ask_once(struct transition *c, struct store *s, struct err *e)
{
	struct stop stop = c->sb.stop;

	if (c->sb.state != SANDBOX_DELETING)
		stop_init(&stop);
	if (step(c, &stop, STOP_FORCE, e) < 0)
		return -1;
	if (c->action == STOP_ACT_NOTE)
		return 0;
	if (step(c, &stop, STOP_BEGIN, e) < 0)
		return -1;
	c->event = sandbox_event_name(EV_DELETE);
	if (store_step(c, s, &stop, e) < 0)
		return -1;
	crash_point("life.deletion-written");
	return 0;
}

static int write_wish(struct job *job, struct store *s, struct err *e)
{
	struct transition *c = container_of(job, struct transition, job);

	for (int i = 0; i < ASK_TRIES; i++) {
		if (store_sandbox_get(s, c->owner, c->sb.id, &c->sb, e) < 0)
			return -1;
		c->read_mono_ms = time_mono_ms();
		c->action = STOP_ACT_DONE;
		if (c->sb.state == SANDBOX_GONE || ask_once(c, s, e) == 0)
			return 0;
		if (e->code != ERR_CONFLICT)
			return -1;
	}
	return err_set(e, ERR_BUSY, "%s is being changed by other requests", c->sb.id);
}

static int write_due(struct job *job, struct store *s, struct err *e)
{
	struct transition *c = container_of(job, struct transition, job);
	struct stop stop = c->sb.stop;
	enum stop_event due;

	if (stop.state == STOP_NONE && step(c, &stop, STOP_REQUEST, e) < 0)
		return -1;
	if (!stop_due(&stop, &due)) /* a request leaves none in that state */
		return err_set(e, ERR_INTERNAL, "nothing is due of %s", c->sb.id);
	c->attempt = stop.attempt;
	if (step(c, &stop, due, e) < 0)
		return -1;
	if (store_step(c, s, &stop, e) < 0)
		return -1;
	crash_point("life.attempt-written");
	return 0;
}

/* What has a record has an owner who may want it: only that it has none is the operator's. */
static int check_unrecorded(const struct transition *c, struct store *s, struct err *e)
{
	const char *host = c->reactor->berthd->settings.host;
	struct sandbox sb = { 0 };

	if (store_sandbox_get(s, NULL, c->sb.id, &sb, e) == 0 && sb.state == SANDBOX_GONE) {
		err_set(e, ERR_CONFLICT, "%s is gone already", sb.id);
		return err_fix(e, "'berth show %s' has the receipt.", sb.id);
	}
	if (sb.id[0]) {
		err_set(e, ERR_CONFLICT, "%s has a record, by which it is %s", sb.id,
			sandbox_state_name(sb.state));
		return err_fix(e, "'berth rm' deletes what has a record.");
	}
	if (e->code != ERR_NOT_FOUND || c->sb.generation > 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	err_set(e, ERR_NOT_FOUND, "nothing of %s is on host %s", c->sb.id, host);
	return err_fix(e, "'berth check', asked on its host, names what has no record.");
}

static int write_abandoned(struct job *job, struct store *s, struct err *e)
{
	struct transition *c = container_of(job, struct transition, job);
	struct sandbox_orphan orphan = {
		.id = c->sb.id,
		.host = c->reactor->berthd->settings.host,
		.generation = c->sb.generation,
		.owner = c->sb.owner,
		.reason = c->why.msg,
		.deadline_ms = transition_deadline_ms(c, SANDBOX_DELETING),
	};

	if (check_unrecorded(c, s, e) < 0 || store_sandbox_abandon(s, &orphan, &c->sb, e) < 0)
		return -1;
	return write_wish(job, s, e);
}

static int write_fact(struct transition *c, struct store *s, enum stop_event ev, struct err *e)
{
	struct stop stop = c->sb.stop;

	if (step(c, &stop, ev, e) < 0)
		return -1;
	if (store_step(c, s, &stop, e) < 0)
		return -1;
	crash_point("life.attempt-ended");
	return 0;
}

static int write_present(struct job *job, struct store *s, struct err *e)
{
	return write_fact(container_of(job, struct transition, job), s, STOP_PRESENT, e);
}

static int write_unknown(struct job *job, struct store *s, struct err *e)
{
	return write_fact(container_of(job, struct transition, job), s, STOP_UNKNOWN, e);
}

static void write_receipt(const struct transition *c, struct buf *out)
{
	const struct node_observation *o = &c->seen;
	char when[TIME_TEXT_SIZE];

	time_text(o->observed_ms, when);
	json_open(out, '{');
	json_str(out, "observed_at", when);
	json_str(out, "host", c->sb.host);
	json_int(out, "generation", (int64_t)c->sb.generation);
	json_str(out, "process", presence_name(o->process));
	json_str(out, "cgroup", presence_name(o->cgroup));
	json_str(out, "disk", presence_name(o->disk));
	json_str(out, "runtime", presence_name(o->runtime));
	json_str(out, "link", presence_name(o->link));
	buf_adds(out, "}");
}

static int erase(struct job *job, struct store *s, struct err *e)
{
	struct transition *c = container_of(job, struct transition, job);
	cleanup(buf_done) struct buf receipt = buf_make(STORE_RECEIPT_MAX);
	cleanup(strv_done) struct strv execs = { 0 };
	struct sandbox_end end = {
		.id = c->sb.id,
		.generation = c->sb.generation,
		.attempt = c->attempt,
	};

	if (c->seen.used.since_ms > 0) { /* its last look, as long as the record is there */
		struct usage_look last = usage_sampler_look(c->sb.id, &c->seen.used);

		if (store_usage_put(s, &last, 1, e) < 0)
			return -1;
		crash_point("life.last-usage-written");
	}
	write_receipt(c, &receipt);
	end.receipt = buf_str(&receipt);
	if (store_sandbox_erase(s, &end, &c->tomb, e) < 0)
		return -1;
	crash_point("life.erased");
	journals_wrappers(c->reactor->berthd->journals, c->sb.id, &execs);
	journals_mark_gone(c->reactor->berthd->journals, c->sb.id, &execs);
	c->sb.state = SANDBOX_GONE;
	c->sb.reason[0] = '\0';
	c->wrote = true;
	return 0;
}

static int read_tombstone(struct job *job, struct store *s, struct err *e)
{
	struct transition *c = container_of(job, struct transition, job);

	return store_tombstone_get(s, c->owner, c->sb.id, &c->tomb, e);
}

/* ---- carrying out ---- */

static void after_erased(struct transition *c, const struct err *why)
{
	c->done(c, why);
}

static void pending(struct transition *c)
{
	struct err e;

	err_set(&e, ERR_BUSY, "%s", c->sb.reason[0] ? c->sb.reason : "not proven gone yet");
	c->done(c, &e);
}

static void on_fact_written(struct transition *c, const struct err *why)
{
	if (why)
		return c->done(c, why);
	if (c->action == STOP_ACT_ALERT) {
		struct alert a = alert_of(c, c->sb.reason);

		alert_tell(c->reactor->berthd, &a, c->request,
			   "remove what holds it and delete it again");
	}
	pending(c);
}

/* What an attempt or a look saw; false: everything is gone. */
static bool is_left(struct transition *c, const union node_any *record, const struct err *why)
{
	if (why) {
		err_set(&c->why, ERR_BUSY, "not proven gone yet: %s", why->msg);
		transition_write(c, write_unknown, on_fact_written);
		return true;
	}
	c->seen = record->observation;
	if (c->seen.presence == PRESENCE_ABSENT)
		return false;
	err_set(&c->why, ERR_BUSY, "not proven gone yet: process %s, cgroup %s, disk %s",
		presence_name(c->seen.process), presence_name(c->seen.cgroup),
		presence_name(c->seen.disk));
	transition_write(c, c->seen.presence == PRESENCE_PRESENT ? write_present : write_unknown,
			 on_fact_written);
	return true;
}

static void on_destroyed(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct transition *c = data;

	(void)fd;
	crash_point("life.destroyed");
	if (is_left(c, record, why))
		return;
	c->event = sandbox_event_name(EV_REMOVED);
	transition_write(c, erase, after_erased);
}

static const struct node_call_events destroyed_events = { .on_done = on_destroyed };

static void act_end(struct transition *c)
{
	struct node_target t;

	transition_target(c, &t);
	node_call(&c->reactor->node, NODE_DESTROY, &t, -1, &destroyed_events, c);
}

static void on_looked(void *data, const union node_any *record, int *fd, const struct err *why)
{
	(void)fd;
	if (!is_left(data, record, why))
		act_end(data); /* nothing is there: only berth-node's own record is left to drop */
}

static const struct node_call_events looked_events = { .on_done = on_looked };

static void act_observe(struct transition *c)
{
	struct node_target t;

	transition_target(c, &t);
	node_call(&c->reactor->node, NODE_OBSERVE, &t, -1, &looked_events, c);
}

static void act_none(struct transition *c)
{
	on_fact_written(c, NULL);
}

static void act_note(struct transition *c)
{
	char attempts[16];

	snprintf(attempts, sizeof(attempts), "%u", c->sb.stop.attempts);
	log_event(LOG_INFO, "sandbox deletion was asked for again: nothing new", "sandbox",
		  c->sb.id, "request_id", c->request, "ladder", stop_state_name(c->sb.stop.state),
		  "attempts", attempts, "why", c->sb.reason, NULL);
	pending(c);
}

/* It was gone before: the same receipt again. */
static void act_done(struct transition *c)
{
	transition_write(c, read_tombstone, after_erased);
}

/* clang-format off */
static void (*const actions[STOP_ACTION_COUNT])(struct transition *c) = {
	[STOP_ACT_NONE]		= act_none,
	[STOP_ACT_NOTE]		= act_note,
	[STOP_ACT_TRY]		= act_none, /* the change that is told to try begins at once */
	[STOP_ACT_END]		= act_end,
	[STOP_ACT_OBSERVE]	= act_observe,
	[STOP_ACT_ALERT]	= act_none,
	[STOP_ACT_DONE]		= act_done,
};
/* clang-format on */

/* What is on another host is seen by that host alone, and not here: not even as absent. */
static bool elsewhere(struct transition *c)
{
	struct err e;

	if (c->sb.state == SANDBOX_GONE ||
	    strcmp(c->sb.host, c->reactor->berthd->settings.host) == 0)
		return false;
	err_set(&e, ERR_BUSY, "it was on host %s, which tells when it is gone", c->sb.host);
	c->done(c, &e);
	return true;
}

static void act(struct transition *c, const struct err *why)
{
	if (why)
		return c->done(c, why);
	if (elsewhere(c))
		return;
	actions[c->action](c);
}

void deletion_ask(struct transition *c, transition_fn *done)
{
	c->done = done;
	transition_mark(c);
	transition_write(c, write_wish, act);
}

void deletion_go_on(struct transition *c, transition_fn *done)
{
	c->done = done;
	transition_mark(c);
	transition_write(c, write_due, act);
}

void deletion_abandon(struct transition *c, const char *reason, transition_fn *done)
{
	c->done = done;
	transition_mark(c);
	err_set(&c->why, ERR_BUSY, "%s", reason);
	transition_write(c, write_abandoned, act);
}

void deletion_lost(struct transition *c, transition_fn *done)
{
	c->done = done;
	transition_mark(c);
	c->attempt = c->sb.stop.attempt;
	err_set(&c->why, ERR_BUSY, "not proven gone yet: berthd ended during the attempt");
	transition_write(c, write_unknown, act);
}

#include "berthd/cluster/host-lease.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/host-capacity.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/time.h"
#include "store/host.h"

#define TICKS_PER_RENEWAL 20
#define TICK_LEAST_MS     10
#define AFTER_FAILURE     5 /* a renewal that failed is tried again after a fifth of the time */

struct lease_agent {
	struct reactor *reactor;
	struct workers workers; /* one, for renewals alone */
	char database[1200];
	char boot_id[BOOT_ID_SIZE];
	unsigned divisor;
	struct host_lease lease;  /* times are CLOCK_BOOTTIME */
	_Atomic int state;        /* the same, for other threads */
	_Atomic uint64_t current; /* epoch, for other threads */
	_Atomic bool told;        /* berth-node knows until when it may run */
	uv_timer_t timer;
	uint64_t next_ms; /* the next word with the database */
	uint64_t look_ms; /* the next look after the others */
	bool asked;       /* berth-node has said what it holds */
	bool asking;      /* and is being asked */
	bool killing;     /* and is ending everything */

	/* One word with the database at a time. */
	struct job job;
	bool under_way;
	bool renews; /* or registers */
	uint64_t epoch;
	uint64_t sent_ms;
	int renewed;
	struct host row;
	struct host_capacity capacity, capacity_sent;
	const struct host_lease_events *events;
};

static struct moment moment_now(const struct lease_agent *k)
{
	return (struct moment){ .now_ms = time_boot_ms(), .divisor = k->divisor };
}

static const char *host_of(const struct lease_agent *k)
{
	return k->reactor->berthd->settings.host;
}

/* ---- what berth-node is told ---- */

static void on_held(void *data, const union node_any *record, int *fd, const struct err *why);
static void on_killed(void *data, const union node_any *record, int *fd, const struct err *why);
static void on_asked(void *data, const union node_any *record, int *fd, const struct err *why);
static void on_frozen(void *data, const union node_any *record, int *fd, const struct err *why);

static const struct node_call_events op_events[LEASE_OP_COUNT] = {
	[LEASE_ASK] = { .on_done = on_asked },
	[LEASE_HOLD] = { .on_done = on_held },
	[LEASE_FREEZE] = { .on_done = on_frozen },
	[LEASE_KILL] = { .on_done = on_killed },
};

static void tell(struct lease_agent *k, enum lease_op op)
{
	struct node_lease l = { .request = "lease", .op = op, .epoch = k->lease.epoch };

	if (op == LEASE_HOLD)
		l.until_ms = host_lease_deadline_ms(&k->lease, k->divisor);
	node_call(&k->reactor->node, NODE_LEASE, &l, -1, &op_events[op], k);
}

static void act(struct lease_agent *k, enum host_lease_action action)
{
	if (action == HOST_ACT_FREEZE)
		tell(k, LEASE_FREEZE);
	if (action == HOST_ACT_KILL && !k->killing) {
		k->killing = true;
		tell(k, LEASE_KILL);
	}
}

/* The one place where the state changes. */
static void apply(struct lease_agent *k, const struct host_lease_input *in)
{
	enum host_lease_state was = k->lease.state;
	enum host_lease_action action;
	struct moment now = moment_now(k);
	char epoch[24];
	struct err e;

	if (host_lease_apply(&k->lease, in, &now, &action, &e) < 0) {
		log_event(LOG_ERROR, "host lease: illegal event", "why", e.msg, NULL);
		return;
	}
	atomic_store(&k->state, k->lease.state);
	atomic_store(&k->current, k->lease.epoch);
	if (!host_lease_runs(&k->lease))
		atomic_store(&k->told, false);
	if (k->lease.state != was) {
		snprintf(epoch, sizeof(epoch), "%" PRIu64, k->lease.epoch);
		log_event(host_lease_runs(&k->lease) ? LOG_INFO : LOG_WARN, "host lease moved",
			  "host", host_of(k), "from", host_lease_state_name(was), "to",
			  host_lease_state_name(k->lease.state), "event",
			  host_lease_event_name(in->event), "epoch", epoch, NULL);
	}
	act(k, action);
}

static void apply_event(struct lease_agent *k, enum host_lease_event ev)
{
	apply(k, &(struct host_lease_input){ .event = ev });
}

static void on_capacity(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct lease_agent *k = data;

	(void)fd;
	if (!why)
		k->capacity = host_capacity_of(&record->capacity);
}

static const struct node_call_events capacity_events = { .on_done = on_capacity };

static void on_held(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct lease_agent *k = data;
	struct node_cursor ask = { .request = "lease" };

	(void)record, (void)fd;
	if (why) {
		log_event(LOG_WARN, "berth-node does not take the lease", "why", why->msg, NULL);
		k->asked = false; /* what does it hold? */
		return;
	}
	atomic_store(&k->told, host_lease_runs(&k->lease));
	node_call(&k->reactor->node, NODE_CAPACITY, &ask, -1, &capacity_events, k);
}

static void on_frozen(void *data, const union node_any *record, int *fd, const struct err *why)
{
	(void)data, (void)record, (void)fd;
	if (why) /* it does it by itself, at the same time */
		log_event(LOG_WARN, "berth-node cannot be told to freeze", "why", why->msg, NULL);
}

static void on_killed(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct lease_agent *k = data;

	(void)fd;
	k->killing = false;
	if (why || record->fence.runs != PRESENCE_ABSENT) { /* again at its deadline */
		log_event(LOG_ERROR, "what was taken over is not seen gone", "why",
			  why ? why->msg : "some of it is there", NULL);
		return;
	}
	crash_point("cell.seen-cleared");
	log_event(LOG_WARN, "all that was taken over is gone", "host", host_of(k), NULL);
	apply_event(k, HOST_CLEARED);
	k->next_ms = 0;
}

/* What berth-node holds is what this host holds, whatever berthd knew. */
static void on_asked(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct lease_agent *k = data;
	const struct node_fence *f = &record->fence;

	(void)fd;
	k->asking = false;
	if (why)
		return;
	k->asked = true;
	k->next_ms = 0;
	if (k->lease.state != HOST_UNREGISTERED) {
		if (f->epoch != k->lease.epoch || f->state == FENCE_KILLING ||
		    f->state == FENCE_CLEAR)
			apply_event(k, HOST_EPOCH_TAKEN);
		return;
	}
	k->lease.epoch = f->epoch;
	k->lease.clear = f->state == FENCE_CLEAR ||
			 (f->state == FENCE_NONE && f->runs == PRESENCE_ABSENT);
	if (f->state == FENCE_KILLING)
		apply_event(k, HOST_EPOCH_TAKEN);
}

/* ---- what the database says ---- */

static struct host_claim claim_of(const struct lease_agent *k)
{
	return (struct host_claim){
		.id = host_of(k),
		.version = BERTH_VERSION,
		.boot_id = k->boot_id,
		.epoch = k->epoch,
		.capacity = &k->capacity_sent,
		.divisor = k->divisor,
	};
}

static int run_renew(struct job *job, struct store *s, struct err *e)
{
	struct lease_agent *k = container_of(job, struct lease_agent, job);
	struct host_claim claim = claim_of(k);

	k->renewed = store_host_renew(s, &claim, &k->row, e);
	crash_point("cell.renewed");
	return k->renewed < 0 ? -1 : 0;
}

static int run_register(struct job *job, struct store *s, struct err *e)
{
	struct lease_agent *k = container_of(job, struct lease_agent, job);
	struct host_claim claim = claim_of(k);

	k->renewed = store_host_register(s, &claim, &k->row, e) < 0 ? -1 : 1;
	crash_point("cell.registered");
	return k->renewed < 0 ? -1 : 0;
}

static void good_news(struct lease_agent *k)
{
	struct host_lease_input in = {
		.event = k->lease.state == HOST_FROZEN ? HOST_CAME_BACK_SAME : HOST_RENEWED,
		.epoch = k->row.epoch,
		.sent_ms = k->sent_ms,
	};
	bool anew = k->lease.state == HOST_UNREGISTERED;

	k->lease.draining = k->row.draining;
	apply(k, &in);
	if (!host_lease_runs(&k->lease))
		return;
	k->next_ms = k->sent_ms + constant_ms(CONSTANT_HOST_RENEW, k->divisor);
	tell(k, LEASE_HOLD);
	if (anew) /* what is still here may have a record elsewhere by now */
		k->events->begun(k->reactor->berthd);
}

static void bad_news(struct lease_agent *k)
{
	if (k->row.removed_ms)
		apply_event(k, HOST_REMOVED);
	else if (k->lease.state == HOST_UNREGISTERED && k->row.epoch == 0)
		k->lease.clear = true; /* it never had an epoch: what runs here is of none */
	else
		apply_event(k, HOST_EPOCH_TAKEN);
}

static void on_word(struct job *job)
{
	struct lease_agent *k = container_of(job, struct lease_agent, job);
	uint64_t again = constant_ms(CONSTANT_HOST_RENEW, k->divisor) / AFTER_FAILURE;

	k->under_way = false;
	k->next_ms = time_boot_ms() + again;
	if (!job->failed && k->renewed == 1)
		return good_news(k);
	if (!job->failed)
		return bad_news(k);
	log_event(LOG_WARN, k->renews ? "the lease is not renewed" : "the host is not registered",
		  "why", job->e.msg, NULL);
	apply_event(k, HOST_RENEW_FAILED);
}

/* Renew what berth-node holds, if it holds anything; otherwise begin anew. */
static void speak(struct lease_agent *k)
{
	bool registers = k->lease.state == HOST_UNREGISTERED && k->lease.clear;

	k->renews = !registers;
	k->under_way = true;
	k->epoch = k->lease.epoch;
	k->capacity_sent = k->capacity;
	k->sent_ms = time_boot_ms();
	k->job = (struct job){
		.reactor = k->reactor,
		.run = registers ? run_register : run_renew,
		.done = on_word,
	};
	worker_submit(&k->workers, &k->job);
}

static void on_tick(uv_timer_t *timer)
{
	struct lease_agent *k = timer->data;
	uint64_t now = time_boot_ms();
	enum host_lease_event due;

	if (host_lease_due(&k->lease, &due) &&
	    now >= host_lease_deadline_ms(&k->lease, k->divisor))
		apply_event(k, due);
	if (!k->asked && !k->asking && k->reactor->node.up) {
		k->asking = true;
		tell(k, LEASE_ASK);
	}
	if (k->asked && !k->under_way && now >= k->next_ms && k->lease.state != HOST_LOST &&
	    k->lease.state != HOST_GONE)
		speak(k);
	if (lease_agent_runs(k) && now >= k->look_ms) {
		k->look_ms = now + constant_ms(CONSTANT_HOST_RENEW, k->divisor) / 2;
		k->events->held(k->reactor->berthd, k->lease.epoch);
	}
}

/* ---- begin and end ---- */

/* A peer that vanished is noticed within a renewal, not within libpq's patience. */
static void conninfo(const struct lease_agent *k, const char *database, char *out, size_t size)
{
	bool uri = strstr(database, "://");
	const char *more = !uri ? " " : strchr(database, '?') ? "&"
							      : "?";

	snprintf(out, size, "%s%sconnect_timeout=2%stcp_user_timeout=%" PRIu64, database, more,
		 uri ? "&" : " ", constant_ms(CONSTANT_HOST_RENEW, k->divisor) / 2);
}

int lease_agent_begin(struct reactor *r, const struct host_lease_events *events,
		      struct lease_agent **ret, struct err *e)
{
	const struct berthd_settings *s = &r->berthd->settings;
	struct lease_agent *k = xcalloc(1, sizeof(*k));
	uint64_t tick;

	k->reactor = r;
	k->divisor = (unsigned)s->timer_divisor;
	conninfo(k, s->database, k->database, sizeof(k->database));
	k->workers.renews = true;
	if (time_boot_id(k->boot_id, e) < 0 || workers_open(&k->workers, k->database, 1, e) < 0) {
		free(k);
		return -1;
	}
	k->events = events;
	tick = constant_ms(CONSTANT_HOST_RENEW, k->divisor) / TICKS_PER_RENEWAL;
	tick = tick < TICK_LEAST_MS ? TICK_LEAST_MS : tick;
	uv_timer_init(&r->loop, &k->timer);
	k->timer.data = k;
	uv_timer_start(&k->timer, on_tick, 0, tick);
	*ret = k;
	return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct lease_agent *k = handle->data;

	free(k);
}

void lease_agent_end(struct lease_agent *k)
{
	if (!k)
		return;
	workers_close(&k->workers);
	uv_close((uv_handle_t *)&k->timer, on_timer_closed);
}

static void on_released(void *data, const union node_any *record, int *fd, const struct err *why)
{
	(void)data, (void)record, (void)fd;
	if (why)
		log_event(LOG_ERROR, "berth-node does not release the fence", "why", why->msg,
			  NULL);
}

static const struct node_call_events release_events = { .on_done = on_released };

void lease_agent_node_up(struct reactor *r)
{
	struct node_lease l = { .request = "lease", .op = LEASE_RELEASE };

	if (!r->berthd->lease_agent)
		node_call(&r->node, NODE_LEASE, &l, -1, &release_events, NULL);
}

bool lease_agent_runs(const struct lease_agent *k)
{
	return !k || atomic_load(&k->told);
}

const char *lease_agent_word(const struct lease_agent *k)
{
	if (!k)
		return "off";
	return host_lease_state_name((enum host_lease_state)atomic_load(&k->state));
}

int lease_agent_cut_off(const struct lease_agent *k, struct err *e)
{
	if (!k || atomic_load(&k->state) != HOST_FROZEN)
		return 0;
	err_set(e, ERR_BUSY, "this host lost touch with the database: its sandboxes are frozen");
	return err_fix(e, "Use another host of the cell, or try again; they go on if it comes back "
			  "in time, and begin anew elsewhere if not.");
}

int lease_agent_check(const struct lease_agent *k, struct err *e)
{
	enum host_lease_state state;

	if (lease_agent_runs(k))
		return 0;
	state = (enum host_lease_state)atomic_load(&k->state);
	err_set(e, ERR_BUSY, "this host may not run sandboxes now: its lease is %s",
		host_lease_state_name(state));
	return err_fix(e, state == HOST_GONE
				  ? "It was removed from the cell. Use another host."
				  : "Try again, or use another host; 'berth host ls' lists them.");
}

uint64_t lease_agent_epoch(const struct lease_agent *k)
{
	return k ? atomic_load(&k->current) : 0;
}

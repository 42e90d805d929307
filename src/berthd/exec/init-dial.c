#include "berthd/exec/init-dial.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/control/transition.h"
#include "berthd/control/wake.h"
#include "berthd/runtime/berthd.h"
#include "lib/errno-map.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"

/* One search, from its beginning to done(). */
struct search {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	bool all; /* an admin's */
	bool only_awake;
	struct init_dial way;
	init_dial_fn done;
	void *data;
	struct job job;
	struct sandbox sb; /* as the database has it; version 0: it was not asked yet */
};

static void search_end(struct search *s, const struct err *why)
{
	s->done(s->data, &s->way, why);
	close_fd(&s->way.fd);
	free(s);
}

static struct node_target target(const struct search *s)
{
	struct node_target t = { .generation = s->way.generation };

	memcpy(t.request, s->request, sizeof(t.request));
	memcpy(t.sandbox, s->way.sandbox, sizeof(t.sandbox));
	return t;
}

/* ---- the connection ---- */

/* Its processes are gone: say so in the record, and to the caller. */
static void on_seen_dead(struct transition *c, const struct err *why)
{
	struct search *s = c->data;
	struct err e;

	if (why && (why->code == ERR_BUSY || why->code == ERR_CONFLICT)) {
		err_set(&e, ERR_BUSY, "%s", why->msg); /* it moved or changed since: again */
	} else if (!why && c->sb.state == SANDBOX_GONE) {
		err_set(&e, ERR_NOT_FOUND, "sandbox %s was deleted", s->way.sandbox);
	} else if (why) {
		err_set(&e, ERR_CONFLICT, "sandbox %s is not running: %s", s->way.sandbox,
			why->msg);
	} else {
		(void)sandbox_failed_error(&c->sb, &e);
	}
	transition_free(c);
	search_end(s, &e);
}

static void on_observed(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct search *s = data;
	struct transition *c;
	struct err e;

	(void)fd;
	if (why)
		return search_end(s, why);
	if (record->observation.process != PRESENCE_ABSENT) {
		err_set(&e, ERR_BUSY, "sandbox %s does not answer", s->way.sandbox);
		return search_end(s, &e);
	}
	c = transition_new(s->reactor, s->request);
	c->sb = s->sb; /* what was seen is of this record, and no later one */
	c->data = s;
	transition_event(c, EV_ABSENT,
			 sandbox_end_reason(&c->sb, time_booted_ms(),
					    record->observation.ended == ENDED_BY_MEMORY),
			 on_seen_dead);
}

static const struct node_call_events observed_events = { .on_done = on_observed };

static void look_up_first(struct search *s);

static void on_connected(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct search *s = data;
	struct node_target t = target(s);

	if (!why) {
		s->way.before = record->usage;
		s->way.fd = take_fd(*fd);
		return search_end(s, NULL);
	}
	sandbox_cache_forget(s->reactor->berthd->sandboxes, s->way.sandbox);
	if (why->code != ERR_CONFLICT && why->code != ERR_NOT_FOUND)
		return search_end(s, why);
	if (s->sb.version == 0) /* a memory may be old */
		return look_up_first(s);
	node_call(&s->reactor->node, NODE_OBSERVE, &t, -1, &observed_events, s);
}

static const struct node_call_events connected_events = { .on_done = on_connected };

static void search_connect(struct search *s)
{
	struct node_target t = target(s);

	node_call(&s->reactor->node, NODE_CONNECT, &t, -1, &connected_events, s);
}

/* ---- the sandbox ---- */

/* Known, ours, and in a state in which it can be used? */
static int check_place(struct search *s, const struct cached_sandbox *p, struct err *e)
{
	struct step step;

	if (!s->all && strcmp(s->owner, p->owner) != 0)
		return err_set(e, ERR_NOT_FOUND, "no sandbox %s", s->way.sandbox);
	if (p->state == SANDBOX_GONE)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s was deleted", s->way.sandbox);
	memcpy(s->way.owner, p->owner, sizeof(s->way.owner)); /* also of one that is woken first */
	if (wake_leads_out_of(p->state) && s->only_awake)
		return err_set(e, ERR_CONFLICT, "sandbox %s is %s", s->way.sandbox,
			       sandbox_state_name(p->state));
	if (wake_leads_out_of(p->state))
		return 0; /* it is woken first */
	if (p->state == SANDBOX_FAILED)
		return sandbox_failed_error(&s->sb, e);
	if (p->state == SANDBOX_CREATING) {
		err_set(e, ERR_BUSY, "sandbox %s is still being created", s->way.sandbox);
		err_fix(e, "Wait until it is ready.");
		return err_reason(e, REASON_NOT_READY, 0);
	}
	if (lifecycle_step(p->state, EV_USE, &step, e) < 0)
		return err_fix(e, "It is being deleted: create another one.");
	s->way.generation = p->generation;
	return 0;
}

static void on_awake(void *data, const struct sandbox *sb, const struct err *why)
{
	struct search *s = data;

	if (why)
		return search_end(s, why);
	s->way.generation = sb->generation;
	s->sb = *sb;
	sandbox_cache_put(s->reactor->berthd->sandboxes, sb);
	search_connect(s);
}

static void go_on(struct search *s, const struct cached_sandbox *p)
{
	struct wait_stable how = {
		.reactor = s->reactor,
		.request = s->request,
		.sandbox = s->way.sandbox,
		.done = on_awake,
		.data = s,
	};

	sandbox_cache_use(s->reactor->berthd->sandboxes, s->way.sandbox, time_mono_ms());
	if (wake_leads_out_of(p->state))
		return control_wake(&how, EV_USE);
	search_connect(s);
}

static int look_up(struct job *job, struct store *store, struct err *e)
{
	struct search *s = container_of(job, struct search, job);

	return store_sandbox_get(store, NULL, s->way.sandbox, &s->sb, e);
}

static void on_looked_up(struct job *job)
{
	struct search *s = container_of(job, struct search, job);
	struct cached_sandbox p = { .generation = s->sb.generation, .state = s->sb.state };
	struct err e = job->e;

	if (job->failed)
		return search_end(s, &e);
	if (s->sb.state != SANDBOX_GONE)
		sandbox_cache_put(s->reactor->berthd->sandboxes, &s->sb);
	memcpy(p.owner, s->sb.owner, sizeof(p.owner));
	if (check_place(s, &p, &e) < 0)
		return search_end(s, &e);
	go_on(s, &p);
}

static void look_up_first(struct search *s)
{
	job_submit(s->reactor, s->owner, &s->job, look_up, on_looked_up);
}

void init_dial_find(const struct init_dial_ask *ask, init_dial_fn done, void *data)
{
	struct search *s = xcalloc(1, sizeof(*s));
	struct cached_sandbox p;
	struct err e;

	s->reactor = ask->reactor;
	s->done = done;
	s->data = data;
	s->way.fd = -1;
	s->all = !ask->owner;
	s->only_awake = ask->only_awake;
	(void)!str_copy(s->request, sizeof(s->request), ask->request);
	(void)!str_copy(s->owner, sizeof(s->owner), ask->owner ? ask->owner : "");
	if (sandbox_id_check(ask->sandbox, &e) < 0)
		return search_end(s, &e);
	(void)!str_copy(s->way.sandbox, sizeof(s->way.sandbox), ask->sandbox); /* it fits */
	/* The record of one that failed says more, and it may have been woken since. */
	if (!sandbox_cache_get(s->reactor->berthd->sandboxes, s->way.sandbox, &p) ||
	    p.state == SANDBOX_FAILED)
		return look_up_first(s);
	if (check_place(s, &p, &e) < 0)
		return search_end(s, &e);
	go_on(s, &p);
}

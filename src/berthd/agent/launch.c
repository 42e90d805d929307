/* A launch: the lease says whether there may be a new instance, and then an exec is it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/agent/lease-op.h"
#include "berthd/agent/wrapper.h"
#include "berthd/exec/exec.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/str.h"

struct launch {
	struct exec_request ask;
	char what[WRAPPER_WHAT_SIZE];
	bool rechecked; /* what is quarantined was looked at once more, for this launch */
	bool fresh;     /* it is a new instance */
	uint64_t retry_ms;
	struct tail *tail;
	wrapper_answer_fn *done;
	void *data;
};

/* ---- may it be? ---- */

static int blocked(struct lease_operation *t, uint64_t retry_ms, struct err *e)
{
	struct launch *l = t->data;
	const struct lease *lease = &t->w.lease;

	l->retry_ms = retry_ms;
	err_set(e, ERR_CONFLICT, "wrapper %s is %s (%s): nothing starts before it is seen gone",
		t->w.name, lease_state_name(lease->state), lease_reason_name(lease->reason));
	err_fix(e, "Try again at retry_at. Putting the sandbox to sleep proves it gone, too.");
	return err_reason(e, "cleanup_pending", 0);
}

static int allocate(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct launch *l = t->data;
	struct lease_input in = { .event = LEASE_ALLOCATE, .instance.id = "wi_" };

	id_random(in.instance.id + 3, ID_RANDOM_CHARS);
	memcpy(t->w.what, l->what, sizeof(t->w.what));
	l->fresh = true;
	return lease_op_apply(t, &in, now, e);
}

static int renew(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct lease_input gone = { .event = LEASE_OWNED_ABSENT, .instance = t->w.lease.instance };

	if (lease_op_apply(t, &gone, now, e) < 0)
		return -1;
	return allocate(t, now, e);
}

static int reuse(struct lease_operation *t, const struct moment *now, struct err *e)
{
	const struct launch *l = t->data;
	struct lease_input in = { .event = LEASE_REUSE, .instance = t->w.lease.instance };

	if (strcmp(t->w.what, l->what) != 0) {
		err_set(e, ERR_CONFLICT, "wrapper %s was started with something else", t->w.name);
		err_fix(e, "Stop it first, or ask for what it runs, in the same words.");
		return err_reason(e, "another_command", 0);
	}
	return lease_op_apply(t, &in, now, e);
}

static int decide_launch(struct lease_operation *t, const struct moment *now, struct err *e);

/* A user waits: what is quarantined is looked at before its time, once. */
static int look_again(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct launch *l = t->data;

	l->rechecked = true;
	t->then = decide_launch;
	return lease_op_attempt(t, LEASE_RECHECK, now, e);
}

static int decide_launch(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct launch *l = t->data;
	struct lease_verdict v = lease_authorize(&t->w.lease, &t->look.seen);

	switch (v.kind) {
	case LEASE_DO_REUSE:
		return reuse(t, now, e);
	case LEASE_DO_ALLOCATE:
		return allocate(t, now, e);
	case LEASE_DO_RENEW:
		return renew(t, now, e);
	case LEASE_DO_STOP:
		if (lease_op_apply(t, &v.stop, now, e) < 0)
			return -1;
		t->failed = true;
		(void)blocked(t, lease_deadline_ms(&t->w.lease), &t->why);
		return 1;
	default:
		if (t->w.lease.state == LEASE_QUARANTINED && !l->rechecked)
			return look_again(t, now, e);
		return blocked(t, v.retry_ms, e);
	}
}

/* ---- its start ---- */

/* What was held when it was refused may not be gone yet: that is for the ladder to see. */
static int decide_refused(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct lease_input in = { .event = LEASE_OWNED_ABSENT, .instance = t->w.lease.instance };

	if (t->look.seen.seen != WRAPPER_ABSENT)
		return lease_op_stop(t, LEASE_STARTUP_FAILED, now, e);
	return lease_op_apply(t, &in, now, e);
}

static void on_started(struct tail *tail, uint32_t pid)
{
	struct lease_operation *t = tail->data;
	struct launch *l = t->data;

	(void)pid;
	crash_point("wrapper.spawned");
	exec_abandon(tail);
	tail_close(take_ptr(l->tail));
	lease_op_again(t, lease_op_only_look);
}

static bool on_output(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	(void)t, (void)type, (void)data, (void)len;
	return false;
}

static void on_gap(struct tail *t, uint64_t bytes)
{
	(void)t, (void)bytes;
}

/* Refused: nothing runs, and nothing did. Or it was over before it was heard of. */
static void on_finished(struct tail *tail, const struct exec_exit *exit, const struct err *why)
{
	struct lease_operation *t = tail->data;
	struct launch *l = t->data;

	(void)exit;
	if (why) {
		t->failed = true;
		t->why = *why;
	}
	exec_abandon(tail);
	tail_close(take_ptr(l->tail));
	lease_op_again(t, why ? decide_refused : lease_op_only_look);
}

static const struct tail_events events = { on_started, on_output, on_gap, NULL, on_finished };

static void spawn(struct lease_operation *t)
{
	struct launch *l = t->data;
	const struct instance *i = &t->w.lease.instance;
	struct caller by = { t->reactor, t->request, t->all ? NULL : t->owner };
	struct exec_begin b = { .sandbox = t->w.sandbox, .background = true, .ask = l->ask };
	char mark[WRAPPER_EXEC_SIZE];

	l->ask = (struct exec_request){ 0 };
	wrapper_exec_id(b.ask.id, t->w.name, i);
	snprintf(mark, sizeof(mark), "BERTH_WRAPPER_INSTANCE=%s", i->id);
	strv_add(&b.ask.env, mark); /* the last one counts */
	snprintf(mark, sizeof(mark), "BERTH_WRAPPER_GENERATION=%" PRIu64, i->generation);
	strv_add(&b.ask.env, mark);
	l->tail = tail_new(t->reactor, &events, t);
	exec_begin(&by, &b, l->tail);
}

/* ---- from the beginning to the answer ---- */

static void on_launched(struct lease_operation *t, const struct err *why)
{
	cleanup(free_ptr) struct launch *l = t->data;
	struct wrapper_answer a = {
		.w = &t->w,
		.look = &t->look,
		.fresh = l->fresh,
		.retry_ms = l->retry_ms,
	};

	exec_request_done(&l->ask);
	l->done(l->data, &a, why);
	lease_op_free(t);
}

int wrapper_launch(const struct wrapper_ask *a, struct wrapper_launch *what,
		   wrapper_answer_fn *done, void *data, struct err *e)
{
	struct lease_operation *t;
	struct launch *l;

	what->ask.flags = EXEC_WHOLE | EXEC_HOLD;
	if (wrapper_name_check(a->name, e) < 0 || exec_request_check(&what->ask, e) < 0) {
		exec_request_done(&what->ask);
		return -1;
	}
	l = xcalloc(1, sizeof(*l));
	l->ask = what->ask;
	what->ask = (struct exec_request){ 0 };
	memcpy(l->what, what->what, sizeof(l->what));
	l->done = done;
	l->data = data;
	t = lease_op_new(a->by.reactor, a->by.request, a->by.owner);
	lease_op_name(t, a->sandbox, a->name);
	t->open = true;
	t->spawn = spawn;
	t->data = l;
	lease_op_begin(t, decide_launch, on_launched);
	return 0;
}

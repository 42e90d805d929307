/*
 * PUT .../wrappers/{}: the one wrapper of this name, started or found. While anything
 * else may be alive under the name, nothing is started.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/api/v1/wrappers.h"
#include "berthd/exec/exec.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/hash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"

struct launch {
	struct request *rq;
	struct exec_request ask;
	char what[WRAPPER_WHAT_SIZE];
	bool rechecked; /* what is quarantined was looked at once more, for this request */
	bool fresh;     /* it is a new instance */
	uint64_t retry_ms;
	struct tail *tail;
};

/* ---- what is asked ---- */

struct launch_body {
	struct strv argv, env;
	char *command;
	char cwd[EXEC_CWD_SIZE];
};

static const struct json_field body_fields[] = {
	JSON_FIELD_STRV(launch_body, argv),
	JSON_FIELD_TEXT(launch_body, command),
	JSON_FIELD_STR(launch_body, cwd),
	JSON_FIELD_MAP(launch_body, env),
	JSON_FIELD_END
};

static void body_done(struct launch_body *b)
{
	strv_done(&b->argv);
	strv_done(&b->env);
	free(b->command);
}

static int read_body(const struct request *rq, struct exec_request *ask, struct err *e)
{
	cleanup(body_done) struct launch_body b = { 0 };

	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, &b, e) < 0)
		return -1;
	if (exec_words_check(b.argv.len > 0, b.command != NULL, e) < 0)
		return -1;
	if (b.command) {
		strv_add(&b.argv, "/bin/sh");
		strv_add(&b.argv, "-c");
		strv_add(&b.argv, b.command);
	}
	ask->argv = b.argv;
	ask->env = b.env;
	b.argv = b.env = (struct strv){ 0 };
	ask->flags = EXEC_WHOLE | EXEC_HOLD;
	memcpy(ask->cwd, b.cwd, sizeof(ask->cwd));
	return exec_request_check(ask, e);
}

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
	struct exec_begin b = { .sandbox = t->w.sandbox, .background = true, .ask = l->ask };
	char mark[WRAPPER_EXEC_SIZE];

	l->ask = (struct exec_request){ 0 };
	wrapper_exec_id(b.ask.id, t->w.name, i);
	snprintf(mark, sizeof(mark), "BERTH_WRAPPER_INSTANCE=%s", i->id);
	strv_add(&b.ask.env, mark); /* the last one counts */
	snprintf(mark, sizeof(mark), "BERTH_WRAPPER_GENERATION=%" PRIu64, i->generation);
	strv_add(&b.ask.env, mark);
	l->tail = tail_new(t->reactor, &events, t);
	exec_begin_for(l->rq, &b, l->tail);
}

static void fail(struct request *rq, const struct launch *l, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	request_error_json(rq, why, &body);
	body.len--; /* the brace */
	wrapper_time_json(&body, "retry_at", l->retry_ms);
	buf_adds(&body, "}");
	request_reply(rq, err_status(why), &body);
}

static void on_launched(struct lease_operation *t, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	cleanup(free_ptr) struct launch *l = t->data;
	struct err e = why ? *why : (struct err){ 0 };

	wrapper_json(&body, &t->w, &t->look);
	exec_request_done(&l->ask);
	lease_op_free(t);
	if (why && l->retry_ms)
		return fail(l->rq, l, &e);
	if (why)
		return request_fail(l->rq, &e);
	request_reply(l->rq, l->fresh ? 201 : 200, &body);
}

void wrappers_launch(struct request *rq)
{
	struct launch *l = xcalloc(1, sizeof(*l));
	struct lease_operation *t;
	struct err e;

	if (wrapper_name_check(rq->sub, &e) < 0 || read_body(rq, &l->ask, &e) < 0) {
		exec_request_done(&l->ask);
		free(l);
		return request_fail(rq, &e);
	}
	l->rq = rq;
	hash_hex(buf_str(&rq->body), rq->body.len, l->what);
	t = lease_op_new(rq->reactor, rq->id, request_owner(rq));
	lease_op_name(t, rq->param, rq->sub);
	t->open = true;
	t->spawn = spawn;
	t->data = l;
	lease_op_begin(t, decide_launch, on_launched);
}

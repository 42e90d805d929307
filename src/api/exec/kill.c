/*
 * POST .../execs/{}/kill and .../execs/kill: signals that are delivered, and ends
 * that have been seen.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/berthd.h"
#include "api/exec/exec.h"
#include "api/exec/execs.h"
#include "api/exec/signal-name.h"
#include "lib/json.h"

#define SEEN_MS   30000 /* for a tree that was killed to be seen gone */
#define GRACE_MAX (3600 * 1000)

/* One exec that is struck. */
struct victim {
	struct errand errand;
	struct tail *tail; /* sees its end */
	uv_timer_t timer;
	struct exec_blow blow;
	bool sent, failed, over;
	int pending; /* the errand, and the timer's handle */
	struct err e;
	exec_struck_fn done;
	void *data;
};

static void victim_unref(struct victim *v)
{
	if (--v->pending > 0)
		return;
	journal_unref(v->errand.journal);
	free(v);
}

static void on_timer_closed(uv_handle_t *handle)
{
	victim_unref(handle->data);
}

/* It is decided: delivered, seen gone, or why not. */
static void victim_over(struct victim *v)
{
	if (v->over)
		return;
	v->over = true;
	tail_close(take_ptr(v->tail));
	uv_close((uv_handle_t *)&v->timer, on_timer_closed);
	v->done(v->data, v->failed ? &v->e : NULL);
}

static void strike(struct victim *v, uint32_t signum)
{
	v->errand.signum = signum;
	v->sent = true;
	v->pending++;
	errand_send(&v->errand);
}

static void on_late(uv_timer_t *timer)
{
	struct victim *v = timer->data;

	v->failed = true;
	err_set(&v->e, ERR_TIMEOUT, "exec %s was sent the signal, but its end was not seen",
		v->errand.journal->head.ask.id);
	victim_over(v);
}

static void on_grace_over(uv_timer_t *timer)
{
	struct victim *v = timer->data;

	uv_timer_start(timer, on_late, SEEN_MS, 0);
	if (v->sent) /* the first has not come back: it does not wait for a second */
		return;
	strike(v, 9);
}

static void on_delivered(struct errand *errand, const struct err *why)
{
	struct victim *v = container_of(errand, struct victim, errand);
	bool wait = errand->signum == 9 || v->blow.grace_ms > 0;

	v->sent = false;
	/* That it has ended is what the tail will say; it is no failure. */
	if (!v->over && why && why->code != ERR_CONFLICT) {
		v->failed = true;
		v->e = *why;
		victim_over(v);
	} else if (!v->over && !wait) {
		victim_over(v);
	}
	victim_unref(v);
}

static void on_started(struct tail *t, uint32_t pid)
{
	(void)t;
	(void)pid;
}

static bool on_output(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	(void)t;
	(void)type;
	(void)data;
	(void)len;
	return false;
}

static void on_gap(struct tail *t, uint64_t bytes)
{
	(void)t;
	(void)bytes;
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct victim *v = t->data;

	(void)exit;
	(void)why; /* a journal has a record */
	victim_over(v);
}

static const struct tail_events sink = { on_started, on_output, on_gap, NULL, on_finished };

void exec_strike(struct reactor *r, struct journal *j, const struct exec_blow *b,
		 exec_struck_fn done, void *data)
{
	struct victim *v = xcalloc(1, sizeof(*v));

	v->errand = (struct errand){ .from = r, .journal = journal_ref(j), .done = on_delivered };
	v->blow = *b;
	v->done = done;
	v->data = data;
	v->pending = 1;
	uv_timer_init(&r->loop, &v->timer);
	v->timer.data = v;
	v->tail = tail_new(r, &sink, v);
	tail_follow(v->tail, j, UINT64_MAX);
	if (b->grace_ms > 0)
		uv_timer_start(&v->timer, on_grace_over, b->grace_ms, 0);
	else
		uv_timer_start(&v->timer, on_late, SEEN_MS, 0);
	strike(v, b->signum);
}

/* ---- what is asked ---- */

static int read_blow(const struct json *body, struct exec_blow *b, struct err *e)
{
	const struct json *signal = body ? json_get(body, "signal") : NULL;
	int64_t grace = body ? json_get_int(body, "grace_ms") : 0;
	char text[32];

	*b = (struct exec_blow){ .signum = 9 };
	if (grace < 0 || grace > GRACE_MAX)
		return err_set(e, ERR_INVALID, "grace_ms must be 0 to %d", GRACE_MAX);
	b->grace_ms = (uint64_t)grace;
	if (!signal)
		return 0;
	if (json_text(signal)[0])
		return signal_by_name(json_text(signal), &b->signum, e);
	snprintf(text, sizeof(text), "%" PRId64, json_get_int(body, "signal"));
	return signal_by_name(text, &b->signum, e);
}

static int read_body(const struct request *rq, struct json **ret, struct err *e)
{
	if (rq->body.len == 0)
		return 0;
	return json_parse(buf_str(&rq->body), rq->body.len, ret, e);
}

/* ---- one ---- */

/* Held by whoever waits for its end. */
struct one {
	struct request *rq;
	struct journal *journal;
};

static void on_one_done(void *data, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	cleanup(free_ptr) struct one *one = data;

	exec_record_json(&body, one->journal);
	journal_unref(one->journal);
	if (why)
		return request_fail(one->rq, why);
	request_reply(one->rq, 200, &body);
}

void execs_kill(struct request *rq)
{
	cleanup(json_free) struct json *body = NULL;
	struct exec_blow b;
	struct journal *j;
	struct one *one;
	struct err e;

	if (read_body(rq, &body, &e) < 0 || read_blow(body, &b, &e) < 0 ||
	    execs_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	one = xcalloc(1, sizeof(*one));
	*one = (struct one){ rq, j };
	exec_strike(rq->reactor, j, &b, on_one_done, one);
}

/* ---- many ---- */

struct many {
	struct request *rq;
	struct exec_blow blow;
	char scope[16], shell[EXEC_ID_SIZE];
	size_t left, killed;
	bool failed;
	struct err e;
};

static void many_end(struct many *m)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = m->rq;
	struct err e = m->e;
	bool failed = m->failed;

	if (--m->left > 0)
		return;
	json_open(&body, '{');
	json_int(&body, "killed", (int64_t)m->killed);
	buf_adds(&body, "}");
	free(m);
	if (failed)
		return request_fail(rq, &e);
	request_reply(rq, 200, &body);
}

static void on_one_of_many(void *data, const struct err *why)
{
	struct many *m = data;

	if (why) {
		m->failed = true;
		m->e = *why;
	} else {
		m->killed++;
	}
	many_end(m);
}

static bool is_in_scope(const struct many *m, const struct journal *j)
{
	const char *owner = request_owner(m->rq);

	if (owner && strcmp(owner, j->head.owner) != 0)
		return false;
	if (strcmp(m->scope, "background") == 0)
		return j->head.background;
	return strcmp(m->scope, "shell") != 0 || strcmp(j->head.ask.shell, m->shell) == 0;
}

static void strike_one(void *data, struct journal *j)
{
	struct many *m = data;
	struct journal_view v;

	journal_look(j, &v);
	if (v.slot.state != JOURNAL_RUNNING || !is_in_scope(m, j))
		return;
	m->left++;
	exec_strike(m->rq->reactor, j, &m->blow, on_one_of_many, m);
}

static int read_scope(const struct json *body, struct many *m, struct err *e)
{
	const char *scope = body ? json_get_str(body, "scope") : "";
	const char *shell = body ? json_get_str(body, "shell") : "";

	snprintf(m->scope, sizeof(m->scope), "%s", scope[0] ? scope : "all");
	snprintf(m->shell, sizeof(m->shell), "%s", shell);
	if (strcmp(m->scope, "all") != 0 && strcmp(m->scope, "background") != 0 &&
	    strcmp(m->scope, "shell") != 0)
		return err_set(e, ERR_INVALID, "scope must be all, background or shell");
	if (strcmp(m->scope, "shell") == 0 && !shell[0])
		return err_set(e, ERR_INVALID, "the scope shell needs a shell");
	return read_blow(body, &m->blow, e);
}

void execs_kill_scope(struct request *rq)
{
	cleanup(json_free) struct json *body = NULL;
	struct many *m = xcalloc(1, sizeof(*m));
	struct err e;

	m->rq = rq;
	if (sandbox_id_check(rq->param, &e) < 0 || read_body(rq, &body, &e) < 0 ||
	    read_scope(body, m, &e) < 0) {
		free(m);
		return request_fail(rq, &e);
	}
	m->left = 1; /* until all are struck */
	journals_running(&rq->reactor->berthd->journals, rq->param, strike_one, m);
	many_end(m);
}

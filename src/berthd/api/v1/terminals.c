#include "berthd/api/v1/terminals.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/exec/terminal.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/time.h"
#include "store/sandbox.h"

#define LIST_MAX 1000

/* ---- as JSON ---- */

static struct exec_size size_of(const struct journal *j, const struct journal_view *v)
{
	return v->slot.size.cols ? v->slot.size : j->head.ask.size;
}

void terminal_json(struct buf *out, struct journal *j)
{
	struct journal_view v;
	struct exec_size size;
	char when[TIME_TEXT_SIZE];

	journal_look(j, &v);
	size = size_of(j, &v);
	json_open(out, '{');
	json_str(out, "sandbox", j->head.sandbox);
	json_str(out, "state", v.slot.state == JOURNAL_RUNNING ? "running" : "ended");
	json_int(out, "cols", size.cols);
	json_int(out, "rows", size.rows);
	json_int(out, "viewers", (int64_t)atomic_load(&j->viewers));
	json_int(out, "pid", v.slot.pid);
	time_text(j->head.started_ms, when);
	json_str(out, "started_at", when);
	json_int(out, "output_bytes", (int64_t)journal_view_end(&v));
	json_int(out, "gap_bytes", (int64_t)(journal_view_end(&v) - v.slot.recorded));
	exec_exit_json(out, j, &v.slot.exit);
	buf_adds(out, "}");
}

int terminals_find(const struct request *rq, struct journal **ret, struct err *e)
{
	struct caller by = request_caller(rq);

	return terminal_find(&by, rq->param, rq->sub, ret, e);
}

int terminals_get(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct journal *j;

	(void)s;
	if (terminals_find(rq, &j, e) < 0)
		return -1;
	terminal_json(reply, j);
	journal_unref(j);
	return 0;
}

/* ---- list ---- */

struct listing {
	struct caller by;
	struct buf *out;
	size_t count;
};

static int add_one(void *data, const char *sandbox, const char *id)
{
	struct listing *l = data;
	struct journal *j;
	struct err ignored;

	if (terminal_find(&l->by, sandbox, id, &j, &ignored) < 0)
		return 0;
	terminal_json(l->out, j);
	journal_unref(j);
	return ++l->count < LIST_MAX ? 0 : -1;
}

int terminals_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = { .by = request_caller(rq), .out = reply };
	struct sandbox sb;

	if (store_sandbox_get(s, request_owner(rq), rq->param, &sb, e) < 0)
		return -1;
	json_open(reply, '{');
	json_key(reply, "terminals");
	json_open(reply, '[');
	journals_each(rq->reactor->berthd->journals, sb.id, add_one, &l);
	buf_adds(reply, "]");
	json_str(reply, "next", "");
	buf_adds(reply, "}");
	return 0;
}

/* ---- create ---- */

struct terminal_body {
	struct strv argv, env;
	char id[EXEC_ID_SIZE];
	char cwd[EXEC_CWD_SIZE];
	int64_t cols, rows, timeout_ms;
};

static const struct json_field body_fields[] = {
	JSON_FIELD_STRV(terminal_body, argv),
	JSON_FIELD_MAP(terminal_body, env),
	JSON_FIELD_STR(terminal_body, id),
	JSON_FIELD_STR(terminal_body, cwd),
	JSON_FIELD_INT(terminal_body, cols),
	JSON_FIELD_INT(terminal_body, rows),
	JSON_FIELD_INT(terminal_body, timeout_ms),
	JSON_FIELD_END
};

static int fill(struct terminal_body *b, struct exec_request *ask, struct err *e)
{
	if (b->timeout_ms < 0)
		return err_set(e, ERR_INVALID, "timeout_ms must not be negative");
	if (terminal_size(b->cols, b->rows, &ask->size, e) < 0)
		return -1;
	ask->argv = b->argv;
	ask->env = b->env;
	b->argv = b->env = (struct strv){ 0 };
	ask->timeout_ms = (uint64_t)b->timeout_ms;
	memcpy(ask->id, b->id, sizeof(ask->id));
	memcpy(ask->cwd, b->cwd, sizeof(ask->cwd));
	return 0;
}

static int read_body(const struct request *rq, struct exec_request *ask, struct err *e)
{
	struct terminal_body b = {
		.cols = TERMINAL_COLS,
		.rows = TERMINAL_ROWS,
		.timeout_ms = (int64_t)terminal_timeout_ms(rq->reactor),
	};
	int n = 0;

	if (rq->body.len > 0)
		n = json_read(buf_str(&rq->body), rq->body.len, body_fields, &b, e);
	if (n == 0)
		n = fill(&b, ask, e);
	strv_done(&b.argv);
	strv_done(&b.env);
	return n;
}

/* A request that waits for something of one terminal. */
struct waiting {
	struct request *rq;
	struct tail *tail;
	int status;
};

/* The request is the caller's to answer. */
static struct request *waiting_free(struct waiting *w)
{
	struct request *rq = w->rq;

	tail_close(w->tail);
	free(w);
	return rq;
}

static void answer(struct waiting *w)
{
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);
	int status = w->status;

	terminal_json(&json, w->tail->journal);
	exec_abandon(w->tail);
	request_reply(waiting_free(w), status, &json);
}

static void on_started(struct tail *t, uint32_t pid)
{
	(void)pid;
	answer(t->data);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct waiting *w = t->data;

	(void)exit;
	if (why)
		return request_fail(waiting_free(w), why);
	answer(w);
}

static const struct tail_events waiting_events = {
	.started = on_started,
	.finished = on_finished,
};

static void on_gone(struct request *rq)
{
	struct waiting *w = rq->data;

	exec_abandon(w->tail);
	request_end(waiting_free(w), 499);
}

static struct waiting *waiting_new(struct request *rq, int status)
{
	struct waiting *w = xcalloc(1, sizeof(*w));

	w->rq = rq;
	w->status = status;
	w->tail = tail_new(rq->reactor, &waiting_events, w);
	rq->data = w;
	rq->on_gone = on_gone;
	return w;
}

void terminals_create(struct request *rq)
{
	struct caller by = request_caller(rq);
	struct terminal_begin b = { .sandbox = rq->param };
	struct waiting *w;
	struct err e;

	if (read_body(rq, &b.ask, &e) < 0 || idempotency_hashes(rq, b.key, b.body, &e) < 0 ||
	    exec_id_allow(rq, b.ask.id, &e) < 0) {
		exec_request_done(&b.ask);
		return request_fail(rq, &e);
	}
	w = waiting_new(rq, 201);
	if (terminal_begin(&by, &b, w->tail, &e) < 0)
		request_fail(waiting_free(w), &e);
}

/* ---- resize, delete ---- */

/* A request about one terminal. */
struct about {
	struct request *rq;
	struct journal *journal;
};

static void on_done(void *data, const struct err *why)
{
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);
	cleanup(free_ptr) struct about *a = data;

	if (!why)
		terminal_json(&json, a->journal);
	journal_unref(a->journal);
	if (why)
		return request_fail(a->rq, why);
	request_reply(a->rq, 200, &json);
}

static struct about *about_new(struct request *rq, struct journal *j)
{
	struct about *a = xcalloc(1, sizeof(*a));

	*a = (struct about){ rq, j };
	return a;
}

struct size_body {
	int64_t cols, rows;
};

static const struct json_field size_fields[] = {
	JSON_FIELD_INT(size_body, cols, .required = true),
	JSON_FIELD_INT(size_body, rows, .required = true),
	JSON_FIELD_END
};

void terminals_resize(struct request *rq)
{
	struct size_body body = { 0 };
	struct exec_size size;
	struct journal *j;
	struct err e;

	if (json_read(buf_str(&rq->body), rq->body.len, size_fields, &body, &e) < 0 ||
	    terminal_size(body.cols, body.rows, &size, &e) < 0 || terminals_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	terminal_resize(rq->reactor, j, &size, on_done, about_new(rq, j));
}

void terminals_delete(struct request *rq)
{
	struct journal *j;
	struct err e;

	if (terminals_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	terminal_end(rq->reactor, j, on_done, about_new(rq, j));
}

#include "berthd/api/v1/terminals.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/exec/exec.h"
#include "berthd/exec/kill.h"
#include "berthd/exec/mailbox.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "core/constants.h"
#include "lib/hash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "proto/writer.h"
#include "store/sandbox.h"

#define DEFAULT_COLS  80
#define DEFAULT_ROWS  24
#define LIST_MAX      1000
/* What there is: bash as at a login, or else sh. */
#define DEFAULT_SHELL "command -v bash >/dev/null && exec bash -l; exec sh -l"

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

static bool is_terminal(const struct journal *j)
{
	return j->head.ask.flags & EXEC_PTY;
}

int terminals_find(const struct request *rq, struct journal **ret, struct err *e)
{
	struct journal *j;

	if (execs_find(rq, &j, e) < 0) {
		if (e->code == ERR_NOT_FOUND)
			err_set(e, ERR_NOT_FOUND, "there is no terminal %.60s in %.60s", rq->sub,
				rq->param);
		return -1;
	}
	if (is_terminal(j)) {
		*ret = j;
		return 0;
	}
	journal_unref(j);
	err_set(e, ERR_NOT_FOUND, "exec %s is no terminal", rq->sub);
	return -1;
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
	struct request *rq;
	struct buf *out;
	size_t count;
};

static int add_one(void *data, const char *sandbox, const char *id)
{
	struct listing *l = data;
	struct journal *j;
	struct err ignored;

	(void)sandbox;
	if (!str_copy(l->rq->sub, sizeof(l->rq->sub), id) ||
	    terminals_find(l->rq, &j, &ignored) < 0)
		return 0;
	terminal_json(l->out, j);
	journal_unref(j);
	return ++l->count < LIST_MAX ? 0 : -1;
}

int terminals_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = { .rq = rq, .out = reply };
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

static int read_size(int64_t cols, int64_t rows, struct exec_size *ret, struct err *e)
{
	struct exec_size size = { 0 };

	if (cols > 0 && cols <= EXEC_SIZE_MAX && rows > 0 && rows <= EXEC_SIZE_MAX)
		size = (struct exec_size){ (uint16_t)cols, (uint16_t)rows };
	if (exec_size_check(&size, e) < 0)
		return -1;
	*ret = size;
	return 0;
}

static void choose_shell(struct strv *argv)
{
	strv_add(argv, "/bin/sh");
	strv_add(argv, "-c");
	strv_add(argv, DEFAULT_SHELL);
}

static int fill(struct terminal_body *b, struct exec_request *ask, struct err *e)
{
	if (b->timeout_ms < 0)
		return err_set(e, ERR_INVALID, "timeout_ms must not be negative");
	if (read_size(b->cols, b->rows, &ask->size, e) < 0)
		return -1;
	if (b->argv.len == 0)
		choose_shell(&b->argv);
	strv_add(&ask->env, "TERM=xterm-256color");
	for (size_t i = 0; i < b->env.len; i++)
		strv_add(&ask->env, b->env.items[i]); /* the last one counts */
	ask->argv = b->argv;
	b->argv = (struct strv){ 0 };
	ask->flags = EXEC_STDIN | EXEC_PTY;
	ask->timeout_ms = (uint64_t)b->timeout_ms;
	memcpy(ask->id, b->id, sizeof(ask->id));
	memcpy(ask->cwd, b->cwd, sizeof(ask->cwd));
	return exec_request_check(ask, e);
}

static int read_body(const struct request *rq, struct exec_request *ask, struct err *e)
{
	struct terminal_body b = {
		.cols = DEFAULT_COLS,
		.rows = DEFAULT_ROWS,
		.timeout_ms = (int64_t)constant_ms(CONSTANT_TERMINAL,
						   (unsigned)rq->reactor->berthd->settings
							   .timer_divisor),
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

/* With a key the id follows from it: the same key, the same terminal. */
static int choose_id(const struct request *rq, struct exec_begin *b, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(1024);
	struct idempotency_use use;

	if (idempotency_read(rq, &use, e) < 0)
		return -1;
	if (use.key[0]) {
		buf_addf(&text, "%s\n%s", use.owner, use.key);
		hash_hex(text.data, text.len, b->key);
		memcpy(b->body, use.body_hash, sizeof(b->body));
	}
	if (b->ask.id[0])
		return exec_id_allow(rq, b->ask.id, e);
	memcpy(b->ask.id, "tm_", 3);
	if (b->key[0])
		memcpy(b->ask.id + 3, b->key, 32);
	else
		id_random(b->ask.id + 3, ID_RANDOM_CHARS);
	return 0;
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
	struct exec_begin b = { .sandbox = rq->param, .keep = true };
	struct err e;

	if (read_body(rq, &b.ask, &e) < 0 || choose_id(rq, &b, &e) < 0) {
		exec_request_done(&b.ask);
		return request_fail(rq, &e);
	}
	exec_begin_for(rq, &b, waiting_new(rq, 201)->tail);
}

/* ---- resize ---- */

struct resizing {
	struct request *rq;
	struct journal *journal;
	struct exec_size size;
};

static void on_resized(void *data, const struct err *why)
{
	struct resizing *r = data;
	struct request *rq = r->rq;
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);

	if (!why) {
		journal_resize(r->journal, &r->size);
		terminal_json(&json, r->journal);
	}
	journal_unref(r->journal);
	free(r);
	if (why)
		return request_fail(rq, why);
	request_reply(rq, 200, &json);
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
	struct resizing *r;
	struct exec_size size;
	struct journal *j;
	struct err e;

	if (json_read(buf_str(&rq->body), rq->body.len, size_fields, &body, &e) < 0 ||
	    read_size(body.cols, body.rows, &size, &e) < 0 || terminals_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	r = xcalloc(1, sizeof(*r));
	*r = (struct resizing){ rq, j, size };
	mail_size(rq->reactor, j, &size, on_resized, r);
}

/* ---- delete ---- */

struct ending {
	struct request *rq;
	struct journal *journal;
};

static void on_ended(void *data, const struct err *why)
{
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);
	cleanup(free_ptr) struct ending *end = data;

	if (!why) {
		terminal_json(&json, end->journal);
		journal_remove(end->journal);
	}
	journal_unref(end->journal);
	if (why)
		return request_fail(end->rq, why);
	request_reply(end->rq, 200, &json);
}

void terminals_delete(struct request *rq)
{
	static const struct kill_spec blow = { .signum = SIGKILL };
	struct ending *end;
	struct journal *j;
	struct err e;

	if (terminals_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	end = xcalloc(1, sizeof(*end));
	*end = (struct ending){ rq, j };
	exec_kill(rq->reactor, j, &blow, on_ended, end);
}

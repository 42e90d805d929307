#include "berthd/api/v1/shells.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/exec/shell.h"
#include "berthd/front/idempotency.h"
#include "lib/json.h"
#include "lib/time.h"

static struct shell_ask ask_of(const struct request *rq, const char *name)
{
	return (struct shell_ask){ request_caller(rq), rq->param, name };
}

/* Unknown is not "gone": only an answer that there is none says that. */
static void add_shell(struct buf *out, const struct shell_row *row, const struct shell_state *state)
{
	const char *cwd = state ? state->cwd : row->cwd;
	char when[TIME_TEXT_SIZE];

	json_open(out, '{');
	json_str(out, "name", row->name);
	json_str(out, "state", !state ? "gone" : state->waiting > 0 ? "busy"
								    : "idle");
	json_bytes(out, "cwd", cwd, strlen(cwd));
	json_int(out, "pid", state ? state->pid : 0);
	json_int(out, "waiting", state ? state->waiting : 0);
	json_int(out, "restarts", state ? state->restarts : 0);
	time_text(row->created_ms, when);
	json_str(out, "created_at", when);
	buf_adds(out, "}");
}

static void answer(struct request *rq, int status, const struct shell_row *row,
		   const struct shell_state *state, const struct err *why)
{
	cleanup(buf_done) struct buf json = buf_make(REPLY_MAX);

	if (why)
		return request_fail(rq, why);
	add_shell(&json, row, state);
	request_reply(rq, status, &json);
}

static void on_shell(void *data, const struct shell_row *row, const struct shell_state *state,
		     const struct err *why)
{
	answer(data, 200, row, state, why);
}

/* ---- create ---- */

struct shell_body {
	char name[SHELL_NAME_SIZE];
	char cwd[EXEC_CWD_SIZE];
	struct strv env;
};

static const struct json_field body_fields[] = {
	JSON_FIELD_STR(shell_body, name),
	JSON_FIELD_STR(shell_body, cwd),
	JSON_FIELD_MAP(shell_body, env),
	JSON_FIELD_END
};

static void body_done(struct shell_body *b)
{
	strv_done(&b->env);
}

static void on_created(void *data, const struct shell_row *row, const struct shell_state *state,
		       const struct err *why)
{
	answer(data, 201, row, state, why);
}

void shells_create(struct request *rq)
{
	cleanup(body_done) struct shell_body b = { 0 };
	struct shell_create c = { .by = request_caller(rq), .sandbox = rq->param, .env = &b.env };
	const struct buf *body = &rq->body;
	struct err e;

	if ((body->len > 0 && json_read(buf_str(body), body->len, body_fields, &b, &e) < 0) ||
	    idempotency_hashes(rq, c.key, c.body, &e) < 0)
		return request_fail(rq, &e);
	memcpy(c.name, b.name, sizeof(c.name));
	memcpy(c.cwd, b.cwd, sizeof(c.cwd));
	if (shell_create(&c, on_created, rq, &e) < 0)
		request_fail(rq, &e);
}

/* ---- get, end, list ---- */

void shells_get(struct request *rq)
{
	struct shell_ask a = ask_of(rq, rq->sub);
	struct err e;

	if (shell_get(&a, on_shell, rq, &e) < 0)
		request_fail(rq, &e);
}

void shells_delete(struct request *rq)
{
	struct shell_ask a = ask_of(rq, rq->sub);
	struct err e;

	if (shell_end(&a, on_shell, rq, &e) < 0)
		request_fail(rq, &e);
}

static void on_each(void *data, const struct shell_row *row, const struct shell_state *state,
		    const struct err *why)
{
	struct request *rq = data;

	(void)why;
	add_shell(&rq->reply, row, state);
}

static void on_listed(void *data, const struct shell_row *row, const struct shell_state *state,
		      const struct err *why)
{
	struct request *rq = data;
	cleanup(buf_done) struct buf json = rq->reply;

	(void)row, (void)state;
	rq->reply = (struct buf){ 0 };
	if (why)
		return request_fail(rq, why);
	buf_adds(&json, "]");
	json_str(&json, "next", "");
	buf_adds(&json, "}");
	request_reply(rq, 200, &json);
}

void shells_list(struct request *rq)
{
	struct shell_ask a = ask_of(rq, NULL);

	rq->reply = buf_make(REPLY_MAX);
	json_open(&rq->reply, '{');
	json_key(&rq->reply, "shells");
	json_open(&rq->reply, '[');
	shell_list(&a, on_each, on_listed, rq);
}

/* ---- for a command ---- */

struct ensuring {
	struct request *rq;
	void (*next)(struct request *rq);
};

static void on_ensured(void *data, const struct shell_row *row, const struct shell_state *state,
		       const struct err *why)
{
	cleanup(free_ptr) struct ensuring *s = data;

	(void)row, (void)state;
	if (why)
		return request_fail(s->rq, why);
	if (!s->rq->x) /* nothing was begun for it yet */
		return request_end(s->rq, 499);
	s->next(s->rq);
}

void shells_ensure(struct request *rq, const char *name, void (*next)(struct request *rq))
{
	struct shell_ask a = ask_of(rq, name);
	struct ensuring *s = xcalloc(1, sizeof(*s));
	struct err e;

	*s = (struct ensuring){ rq, next };
	if (shell_ensure(&a, on_ensured, s, &e) == 0)
		return;
	free(s);
	request_fail(rq, &e);
}

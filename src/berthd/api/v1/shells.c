#include "berthd/api/v1/shells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/shell-guest.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"
#include "store/shell.h"

/* One request about shells, through the store and the guest and back. */
struct shells {
	struct request *rq;
	struct job job;
	char name[SHELL_NAME_SIZE];
	char sandbox[SANDBOX_ID_SIZE];
	struct shell_row row;   /* the one it is about */
	bool made, refused;     /* `why` */
	struct shell_row *rows; /* of a list */
	size_t count, at;
	struct buf json;
	struct err why;
	void (*next)(struct request *rq);
};

static struct shells *shells_new(struct request *rq)
{
	struct shells *s = xcalloc(1, sizeof(*s));

	s->rq = rq;
	s->json = buf_make(REPLY_MAX);
	return s;
}

/* The request is the caller's to answer. */
static struct request *shells_free(struct shells *s)
{
	struct request *rq = s->rq;

	buf_done(&s->json);
	free(s->rows);
	free(s);
	return rq;
}

static void fail(struct shells *s, const struct err *why)
{
	struct err e = *why;

	request_fail(shells_free(s), &e);
}

static void submit(struct shells *s, int (*run)(struct job *, struct store *, struct err *),
		   void (*done)(struct job *))
{
	job_submit(s->rq->reactor, request_owner(s->rq), &s->job, run, done);
}

static struct init_dial_ask way_of(const struct shells *s)
{
	return (struct init_dial_ask){ s->rq->reactor, s->rq->id, request_owner(s->rq),
				       s->rq->param };
}

/* ---- as JSON ---- */

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

static void reply(struct shells *s, int status)
{
	cleanup(buf_done) struct buf json = s->json;

	s->json = (struct buf){ 0 };
	request_reply(shells_free(s), status, &json);
}

/* ---- the store's part ---- */

static int find_sandbox(struct shells *s, struct store *store, struct err *e)
{
	struct sandbox sb;

	if (store_sandbox_get(store, request_owner(s->rq), s->rq->param, &sb, e) < 0)
		return -1;
	memcpy(s->sandbox, sb.id, sizeof(s->sandbox));
	return 0;
}

static int run_get(struct job *job, struct store *store, struct err *e)
{
	struct shells *s = container_of(job, struct shells, job);

	if (find_sandbox(s, store, e) < 0)
		return -1;
	return store_shell_get(store, s->sandbox, s->name, &s->row, e);
}

static int run_remove(struct job *job, struct store *store, struct err *e)
{
	struct shells *s = container_of(job, struct shells, job);

	return store_shell_remove(store, s->sandbox, s->name, e);
}

/* The record as a request to begin it. shell_request_done() it. */
static int request_of(const struct shell_row *row, struct shell_request *ret, struct err *e)
{
	struct body {
		struct strv env;
	} body = { 0 };
	static const struct json_field fields[] = { JSON_FIELD_MAP(body, env), JSON_FIELD_END };

	if (json_read(row->env, strlen(row->env), fields, &body, e) < 0) {
		strv_done(&body.env);
		return err_wrap(e, "the record of shell %s", row->name);
	}
	memcpy(ret->name, row->name, sizeof(ret->name));
	memcpy(ret->cwd, row->cwd, sizeof(ret->cwd));
	ret->env = body.env;
	return 0;
}

static void begin_guest(struct shells *s, shell_guest_fn done)
{
	cleanup(shell_request_done) struct shell_request q = { 0 };
	struct init_dial_ask way = way_of(s);
	struct err e;

	if (request_of(&s->row, &q, &e) < 0)
		return done(s, NULL, &e);
	shell_guest_begin(&way, &q, done, s);
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

static bool is_variable(const char *var)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	size_t len = strcspn(var, "=");

	if (!strchr(letters, var[0]) || !var[0])
		return false;
	for (size_t i = 0; i < len; i++)
		if (!strchr(letters, var[i]) && (var[i] < '0' || var[i] > '9'))
			return false;
	return true;
}

static int env_json(struct buf *out, const struct strv *env, struct err *e)
{
	json_open(out, '{');
	json_key(out, "env");
	json_open(out, '{');
	for (size_t i = 0; i < env->len; i++) {
		const char *value = strchr(env->items[i], '=') + 1;
		char name[256];

		if (!is_variable(env->items[i]) ||
		    !str_copy_bytes(name, sizeof(name), env->items[i],
				    (size_t)(value - env->items[i] - 1)))
			return err_set(e, ERR_INVALID, "not a variable's name: \"%.40s\"",
				       env->items[i]);
		json_str(out, name, value);
	}
	buf_adds(out, "}}");
	return 0;
}

/* One key makes one shell, and always the same. */
static int read_key(struct shells *s, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(1024);
	struct idempotency_use use;
	char hash[HASH_HEX_SIZE];

	if (idempotency_read(s->rq, &use, e) < 0)
		return -1;
	if (use.key[0]) {
		buf_addf(&text, "%s\n%s", use.owner, use.key);
		hash_hex(text.data, text.len, hash);
		snprintf(s->row.made_by, sizeof(s->row.made_by), "%s%s", hash, use.body_hash);
	}
	if (!s->row.name[0]) {
		memcpy(s->row.name, "sh-", 3);
		id_random(s->row.name + 3, ID_RANDOM_CHARS);
		if (use.key[0])
			memcpy(s->row.name + 3, hash, ID_RANDOM_CHARS);
	}
	return 0;
}

static int read_body(struct shells *s, struct err *e)
{
	struct shell_body b = { 0 };
	cleanup(buf_done) struct buf env = buf_make(STORE_SHELL_ENV);
	const struct buf *body = &s->rq->body;
	int n = 0;

	if (body->len > 0)
		n = json_read(buf_str(body), body->len, body_fields, &b, e);
	if (n == 0)
		n = env_json(&env, &b.env, e);
	strv_done(&b.env);
	if (n < 0)
		return -1;
	if (buf_overflowed(&env))
		return err_set(e, ERR_TOO_LARGE, "the environment is longer than %d bytes",
			       STORE_SHELL_ENV - 1);
	memcpy(s->row.name, b.name, sizeof(s->row.name));
	memcpy(s->row.cwd, b.cwd, sizeof(s->row.cwd));
	memcpy(s->row.env, buf_str(&env), env.len + 1);
	if (read_key(s, e) < 0 || shell_name_check(s->row.name, e) < 0)
		return -1;
	memcpy(s->name, s->row.name, sizeof(s->name));
	return 0;
}

static int run_add(struct job *job, struct store *store, struct err *e)
{
	struct shells *s = container_of(job, struct shells, job);
	cleanup(free_ptr) struct shell_row *got = xcalloc(1, sizeof(*got));

	if (find_sandbox(s, store, e) < 0 ||
	    store_shell_add(store, s->sandbox, &s->row, got, &s->made, e) < 0)
		return -1;
	crash_point("shell.recorded");
	s->refused = !s->made &&
		     (!s->row.made_by[0] || strncmp(s->row.made_by, got->made_by, 64) != 0);
	if (s->refused)
		err_set(&s->why, ERR_CONFLICT, "a shell %s already exists", s->name);
	else if (!s->made && strcmp(s->row.made_by, got->made_by) != 0)
		return err_set(e, ERR_CONFLICT,
			       "this Idempotency-Key was used before, for another body");
	s->row = *got;
	return 0;
}

static void on_unmade(struct job *job)
{
	struct shells *s = container_of(job, struct shells, job);

	fail(s, &s->why);
}

static void on_begun(void *data, const struct shell_state *state, const struct err *why)
{
	struct shells *s = data;

	if (why && s->made) { /* it is not there, and no client was told that it is */
		s->why = *why;
		return submit(s, run_remove, on_unmade);
	}
	if (why || s->refused) /* and what exists, is there */
		return fail(s, why ? why : &s->why);
	add_shell(&s->json, &s->row, state);
	reply(s, 201);
}

static void on_asked_again(void *data, const struct shell_state *state, const struct err *why)
{
	struct shells *s = data;

	if (why && why->code == ERR_NOT_FOUND)
		return begin_guest(s, on_begun);
	on_begun(s, state, why);
}

static void on_added(struct job *job)
{
	struct shells *s = container_of(job, struct shells, job);
	struct init_dial_ask way = way_of(s);

	if (job->failed)
		return fail(s, &job->e);
	if (s->made)
		return begin_guest(s, on_begun);
	shell_guest_ask(&way, FRAME_SHELL_ASK, s->name, on_asked_again, s);
}

void shells_create(struct request *rq)
{
	struct shells *s = shells_new(rq);
	struct err e;

	if (read_body(s, &e) < 0)
		return fail(s, &e);
	submit(s, run_add, on_added);
}

/* ---- get, end ---- */

static struct shells *begin_one(struct request *rq)
{
	struct shells *s = shells_new(rq);
	struct err e;

	if (shell_name_check(rq->sub, &e) < 0) {
		err_set(&e, ERR_NOT_FOUND, "there is no shell %.60s", rq->sub);
		fail(s, &e);
		return NULL;
	}
	(void)!str_copy(s->name, sizeof(s->name), rq->sub); /* a checked name fits */
	return s;
}

static void on_state(void *data, const struct shell_state *state, const struct err *why)
{
	struct shells *s = data;

	if (why && why->code != ERR_NOT_FOUND)
		return fail(s, why);
	add_shell(&s->json, &s->row, state);
	reply(s, 200);
}

static void on_got(struct job *job)
{
	struct shells *s = container_of(job, struct shells, job);
	struct init_dial_ask way = way_of(s);

	if (job->failed)
		return fail(s, &job->e);
	shell_guest_ask(&way, FRAME_SHELL_ASK, s->name, on_state, s);
}

void shells_get(struct request *rq)
{
	struct shells *s = begin_one(rq);

	if (s)
		submit(s, run_get, on_got);
}

static void on_removed(struct job *job)
{
	struct shells *s = container_of(job, struct shells, job);

	if (job->failed)
		return fail(s, &job->e);
	add_shell(&s->json, &s->row, NULL);
	reply(s, 200);
}

static void on_ended(void *data, const struct shell_state *state, const struct err *why)
{
	struct shells *s = data;

	if (state) /* where it was in the end; the record has where it began */
		(void)!str_copy(s->row.cwd, sizeof(s->row.cwd), state->cwd);
	/* Not there, or in a sandbox that does not run: then it is gone, too. */
	if (why && why->code != ERR_NOT_FOUND && why->code != ERR_CONFLICT)
		return fail(s, why);
	crash_point("shell.ended");
	submit(s, run_remove, on_removed);
}

static void on_got_to_end(struct job *job)
{
	struct shells *s = container_of(job, struct shells, job);
	struct init_dial_ask way = way_of(s);

	if (job->failed)
		return fail(s, &job->e);
	shell_guest_ask(&way, FRAME_SHELL_END, s->name, on_ended, s);
}

void shells_delete(struct request *rq)
{
	struct shells *s = begin_one(rq);

	if (s)
		submit(s, run_get, on_got_to_end);
}

/* ---- list ---- */

static void keep_row(const struct shell_row *row, void *arg)
{
	struct shells *s = arg;

	s->rows = xrealloc(s->rows, (s->count + 1) * sizeof(s->rows[0]));
	s->rows[s->count++] = *row;
}

static int run_list(struct job *job, struct store *store, struct err *e)
{
	struct shells *s = container_of(job, struct shells, job);

	if (find_sandbox(s, store, e) < 0)
		return -1;
	return store_shell_list(store, s->sandbox, keep_row, s, e);
}

static void on_listed_state(void *data, const struct shell_state *state, const struct err *why);

static void ask_next(struct shells *s)
{
	struct init_dial_ask way = way_of(s);

	if (s->at < s->count)
		return shell_guest_ask(&way, FRAME_SHELL_ASK, s->rows[s->at].name, on_listed_state,
				       s);
	buf_adds(&s->json, "]");
	json_str(&s->json, "next", "");
	buf_adds(&s->json, "}");
	reply(s, 200);
}

static void on_listed_state(void *data, const struct shell_state *state, const struct err *why)
{
	struct shells *s = data;

	if (why && why->code != ERR_NOT_FOUND)
		return fail(s, why);
	add_shell(&s->json, &s->rows[s->at++], state);
	ask_next(s);
}

static void on_listed(struct job *job)
{
	struct shells *s = container_of(job, struct shells, job);

	if (job->failed)
		return fail(s, &job->e);
	json_open(&s->json, '{');
	json_key(&s->json, "shells");
	json_open(&s->json, '[');
	ask_next(s);
}

void shells_list(struct request *rq)
{
	submit(shells_new(rq), run_list, on_listed);
}

/* ---- for a command ---- */

static void go_on(struct shells *s)
{
	void (*next)(struct request * rq) = s->next;
	struct request *rq = shells_free(s);

	if (!rq->x) /* nothing was begun for it yet */
		return request_end(rq, 499);
	next(rq);
}

static void on_begun_again(void *data, const struct shell_state *state, const struct err *why)
{
	struct shells *s = data;

	(void)state;
	if (why && why->code != ERR_CONFLICT) /* another request was quicker */
		return fail(s, why);
	go_on(s);
}

static void on_got_to_begin(struct job *job)
{
	struct shells *s = container_of(job, struct shells, job);

	if (job->failed)
		return fail(s, &job->e);
	begin_guest(s, on_begun_again);
}

static void on_there(void *data, const struct shell_state *state, const struct err *why)
{
	struct shells *s = data;

	(void)state;
	if (why && why->code == ERR_NOT_FOUND)
		return submit(s, run_get, on_got_to_begin);
	if (why)
		return fail(s, why);
	go_on(s);
}

void shells_ensure(struct request *rq, const char *name, void (*next)(struct request *rq))
{
	struct shells *s = shells_new(rq);
	struct init_dial_ask way = way_of(s);
	struct err e;

	if (shell_name_check(name, &e) < 0)
		return fail(s, &e);
	(void)!str_copy(s->name, sizeof(s->name), name); /* a checked name fits */
	s->next = next;
	shell_guest_ask(&way, FRAME_SHELL_ASK, s->name, on_there, s);
}

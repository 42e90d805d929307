#include "berthd/exec/shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/leftovers.h"
#include "berthd/exec/shell-guest.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "store/sandbox.h"

/* One thing done to shells, through the store and the guest and back. */
struct shell_op {
	struct caller by;
	const char *asked; /* the sandbox */
	struct job job;
	char name[SHELL_NAME_SIZE];
	char sandbox[SANDBOX_ID_SIZE];
	struct shell_row row;   /* the one it is about */
	bool made, refused;     /* `why` */
	struct shell_row *rows; /* of a list */
	size_t count, at;
	struct err why;
	shell_fn each, done;
	void *data;
};

static struct shell_op *op_new(const struct caller *by, const char *sandbox, shell_fn done,
			       void *data)
{
	struct shell_op *o = xcalloc(1, sizeof(*o));

	o->by = *by;
	o->asked = sandbox;
	o->done = done;
	o->data = data;
	return o;
}

static void op_end(struct shell_op *o, const struct shell_row *row,
		   const struct shell_state *state, const struct err *why)
{
	o->done(o->data, why ? NULL : row, why ? NULL : state, why);
	free(o->rows);
	free(o);
}

static void fail(struct shell_op *o, const struct err *why)
{
	op_end(o, NULL, NULL, why);
}

static void submit(struct shell_op *o, int (*run)(struct job *, struct store *, struct err *),
		   void (*done)(struct job *))
{
	job_submit(o->by.reactor, o->by.owner, &o->job, run, done);
}

static struct init_dial_ask way_of(const struct shell_op *o)
{
	return (struct init_dial_ask){ o->by.reactor, o->by.request, o->by.owner, o->asked };
}

static void ask_guest(struct shell_op *o, enum frame_type what, const char *name,
		      shell_guest_fn done)
{
	struct init_dial_ask way = way_of(o);

	shell_guest_ask(&way, what, name, done, o);
}

/* ---- the store's part ---- */

static int find_sandbox(struct shell_op *o, struct store *store, struct err *e)
{
	struct sandbox sb;

	if (store_sandbox_get(store, o->by.owner, o->asked, &sb, e) < 0)
		return -1;
	memcpy(o->sandbox, sb.id, sizeof(o->sandbox));
	return 0;
}

static int run_get(struct job *job, struct store *store, struct err *e)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (find_sandbox(o, store, e) < 0)
		return -1;
	return store_shell_get(store, o->sandbox, o->name, &o->row, e);
}

static int run_remove(struct job *job, struct store *store, struct err *e)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	return store_shell_remove(store, o->sandbox, o->name, e);
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

static void begin_guest(struct shell_op *o, shell_guest_fn done)
{
	cleanup(shell_request_done) struct shell_request q = { 0 };
	struct init_dial_ask way = way_of(o);
	struct err e;

	if (request_of(&o->row, &q, &e) < 0)
		return done(o, NULL, &e);
	shell_guest_begin(&way, &q, done, o);
}

/* ---- create ---- */

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

/* As the record has it. */
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
	if (buf_overflowed(out))
		return err_set(e, ERR_TOO_LARGE, "the environment is longer than %d bytes",
			       STORE_SHELL_ENV - 1);
	return 0;
}

static void choose_name(const struct shell_create *c, char name[SHELL_NAME_SIZE])
{
	memcpy(name, "sh-", 3);
	id_random(name + 3, ID_RANDOM_CHARS);
	if (c->key[0])
		memcpy(name + 3, c->key, ID_RANDOM_CHARS);
}

static int make_row(const struct shell_create *c, struct shell_row *row, struct err *e)
{
	cleanup(buf_done) struct buf env = buf_make(STORE_SHELL_ENV);

	if (env_json(&env, c->env, e) < 0)
		return -1;
	memcpy(row->name, c->name, sizeof(row->name));
	memcpy(row->cwd, c->cwd, sizeof(row->cwd));
	memcpy(row->env, buf_str(&env), env.len + 1);
	if (c->key[0])
		snprintf(row->made_by, sizeof(row->made_by), "%s%s", c->key, c->body);
	if (!row->name[0])
		choose_name(c, row->name);
	return shell_name_check(row->name, e);
}

static int run_add(struct job *job, struct store *store, struct err *e)
{
	struct shell_op *o = container_of(job, struct shell_op, job);
	cleanup(free_ptr) struct shell_row *got = xcalloc(1, sizeof(*got));

	if (find_sandbox(o, store, e) < 0 ||
	    store_shell_add(store, o->sandbox, &o->row, got, &o->made, e) < 0)
		return -1;
	crash_point("shell.recorded");
	o->refused = !o->made &&
		     (!o->row.made_by[0] || strncmp(o->row.made_by, got->made_by, 64) != 0);
	if (o->refused)
		err_set(&o->why, ERR_CONFLICT, "a shell %s already exists", o->name);
	else if (!o->made && strcmp(o->row.made_by, got->made_by) != 0)
		return err_set(e, ERR_CONFLICT,
			       "this Idempotency-Key was used before, for another body");
	o->row = *got;
	return 0;
}

static void on_unmade(struct job *job)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	fail(o, &o->why);
}

static void on_begun(void *data, const struct shell_state *state, const struct err *why)
{
	struct shell_op *o = data;

	if (why && o->made) { /* it is not there, and no caller was told that it is */
		o->why = *why;
		return submit(o, run_remove, on_unmade);
	}
	if (why || o->refused) /* and what exists, is there */
		return fail(o, why ? why : &o->why);
	op_end(o, &o->row, state, NULL);
}

static void on_asked_again(void *data, const struct shell_state *state, const struct err *why)
{
	struct shell_op *o = data;

	if (why && why->code == ERR_NOT_FOUND)
		return begin_guest(o, on_begun);
	on_begun(o, state, why);
}

static void on_added(struct job *job)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (job->failed)
		return fail(o, &job->e);
	if (o->made)
		return begin_guest(o, on_begun);
	ask_guest(o, FRAME_SHELL_ASK, o->name, on_asked_again);
}

int shell_create(const struct shell_create *c, shell_fn done, void *data, struct err *e)
{
	cleanup(free_ptr) struct shell_op *o = op_new(&c->by, c->sandbox, done, data);

	if (make_row(c, &o->row, e) < 0)
		return -1;
	memcpy(o->name, o->row.name, sizeof(o->name));
	submit(take_ptr(o), run_add, on_added);
	return 0;
}

/* ---- get, end ---- */

static int begin_one(const struct shell_ask *a, shell_fn done, void *data, struct shell_op **ret,
		     struct err *e)
{
	if (shell_name_check(a->name, e) < 0) {
		err_set(e, ERR_NOT_FOUND, "there is no shell %.60s", a->name);
		return -1;
	}
	*ret = op_new(&a->by, a->sandbox, done, data);
	(void)!str_copy((*ret)->name, sizeof((*ret)->name), a->name); /* a checked name fits */
	return 0;
}

static void on_state(void *data, const struct shell_state *state, const struct err *why)
{
	struct shell_op *o = data;

	if (why && why->code != ERR_NOT_FOUND)
		return fail(o, why);
	op_end(o, &o->row, state, NULL);
}

static void on_got(struct job *job)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (job->failed)
		return fail(o, &job->e);
	ask_guest(o, FRAME_SHELL_ASK, o->name, on_state);
}

int shell_get(const struct shell_ask *a, shell_fn done, void *data, struct err *e)
{
	struct shell_op *o;

	if (begin_one(a, done, data, &o, e) < 0)
		return -1;
	submit(o, run_get, on_got);
	return 0;
}

static void on_removed(struct job *job)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (job->failed)
		return fail(o, &job->e);
	op_end(o, &o->row, NULL, NULL);
}

static void on_ended(void *data, const struct shell_state *state, const struct err *why)
{
	struct shell_op *o = data;
	struct err e = why ? *why : (struct err){ 0 };

	if (state) /* where it was in the end; the record has where it began */
		(void)!str_copy(o->row.cwd, sizeof(o->row.cwd), state->cwd);
	/* Not there, or in a sandbox that does not run: then it is gone, too. */
	if (why && (leftovers_unknown(&e) ||
		    (why->code != ERR_NOT_FOUND && why->code != ERR_CONFLICT)))
		return fail(o, &e);
	crash_point("shell.ended");
	submit(o, run_remove, on_removed);
}

static void on_got_to_end(struct job *job)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (job->failed)
		return fail(o, &job->e);
	ask_guest(o, FRAME_SHELL_END, o->name, on_ended);
}

int shell_end(const struct shell_ask *a, shell_fn done, void *data, struct err *e)
{
	struct shell_op *o;

	if (begin_one(a, done, data, &o, e) < 0)
		return -1;
	submit(o, run_get, on_got_to_end);
	return 0;
}

/* ---- list ---- */

static void keep_row(const struct shell_row *row, void *arg)
{
	struct shell_op *o = arg;

	o->rows = xrealloc(o->rows, (o->count + 1) * sizeof(o->rows[0]));
	o->rows[o->count++] = *row;
}

static int run_list(struct job *job, struct store *store, struct err *e)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (find_sandbox(o, store, e) < 0)
		return -1;
	return store_shell_list(store, o->sandbox, keep_row, o, e);
}

static void on_listed_state(void *data, const struct shell_state *state, const struct err *why);

static void ask_next(struct shell_op *o)
{
	if (o->at == o->count)
		return op_end(o, NULL, NULL, NULL);
	ask_guest(o, FRAME_SHELL_ASK, o->rows[o->at].name, on_listed_state);
}

static void on_listed_state(void *data, const struct shell_state *state, const struct err *why)
{
	struct shell_op *o = data;

	if (why && why->code != ERR_NOT_FOUND)
		return fail(o, why);
	o->each(o->data, &o->rows[o->at++], state, NULL);
	ask_next(o);
}

static void on_listed(struct job *job)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (job->failed)
		return fail(o, &job->e);
	ask_next(o);
}

void shell_list(const struct shell_ask *a, shell_fn each, shell_fn done, void *data)
{
	struct shell_op *o = op_new(&a->by, a->sandbox, done, data);

	o->each = each;
	submit(o, run_list, on_listed);
}

/* ---- for a command ---- */

static void on_begun_again(void *data, const struct shell_state *state, const struct err *why)
{
	struct shell_op *o = data;

	(void)state;
	if (why && why->code != ERR_CONFLICT) /* another caller was quicker */
		return fail(o, why);
	op_end(o, NULL, NULL, NULL);
}

static void on_got_to_begin(struct job *job)
{
	struct shell_op *o = container_of(job, struct shell_op, job);

	if (job->failed)
		return fail(o, &job->e);
	begin_guest(o, on_begun_again);
}

static void on_there(void *data, const struct shell_state *state, const struct err *why)
{
	struct shell_op *o = data;

	(void)state;
	if (why && why->code == ERR_NOT_FOUND)
		return submit(o, run_get, on_got_to_begin);
	if (why)
		return fail(o, why);
	op_end(o, NULL, NULL, NULL);
}

int shell_ensure(const struct shell_ask *a, shell_fn done, void *data, struct err *e)
{
	struct shell_op *o;

	if (shell_name_check(a->name, e) < 0)
		return -1;
	o = op_new(&a->by, a->sandbox, done, data);
	(void)!str_copy(o->name, sizeof(o->name), a->name); /* a checked name fits */
	ask_guest(o, FRAME_SHELL_ASK, o->name, on_there);
	return 0;
}

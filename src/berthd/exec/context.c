#include "berthd/exec/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/context-run.h"
#include "berthd/exec/leftovers.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "store/sandbox.h"

#define START_TIMEOUT_MS 60000 /* for an interpreter to come up, however short its runs may be */
#define NAME_LETTERS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* One context being made, or ended. */
struct context_op {
	struct context_record record;
	struct caller by;
	const char *sandbox;
	const char *name; /* of one that is to end */
	struct job job;
	void *run; /* under way; it calls back by itself */
	bool made;
	bool erased;    /* of an end */
	struct err why; /* it could not be had */
	context_done_fn done;
	void *data;
};

static struct context_op *op_new(const struct caller *by, const char *sandbox,
				 context_done_fn done, void *data)
{
	struct context_op *o = xcalloc(1, sizeof(*o));

	o->by = *by;
	o->sandbox = sandbox;
	o->done = done;
	o->data = data;
	return o;
}

static void op_end(struct context_op *o, const struct err *why)
{
	o->done(o->data, why ? NULL : &o->record, o->made, why);
	free(o);
}

static void submit(struct context_op *o, int (*run)(struct job *, struct store *, struct err *),
		   void (*done)(struct job *))
{
	job_submit(o->by.reactor, o->by.owner, &o->job, run, done);
}

static int find_sandbox(struct context_op *o, struct store *s, struct sandbox *ret, struct err *e)
{
	if (store_sandbox_get(s, o->by.owner, o->sandbox, ret, e) < 0)
		return -1;
	if (ret->state == SANDBOX_GONE)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s was deleted", ret->id);
	return 0;
}

static int erase(struct job *job, struct store *s, struct err *e)
{
	struct context_op *o = container_of(job, struct context_op, job);
	bool found;

	return store_context_delete(s, o->record.id, &found, e);
}

/* ---- runs of nothing: only that they start, or end, is of interest ---- */

static void on_run_started(struct code_run *r)
{
	(void)r;
}

static bool on_run_output(struct code_run *r, enum frame_type stream, const uint8_t *data,
			  size_t len)
{
	(void)r, (void)stream, (void)data, (void)len;
	return false;
}

static bool on_run_note(struct code_run *r, enum note_type type, const struct buf *json)
{
	(void)r, (void)type, (void)json;
	return false;
}

static void begin_run(struct context_op *o, struct code_ask *ask, const struct code_sink *sink)
{
	struct code_begin b = {
		.by = &o->by,
		.sandbox = o->sandbox,
		.ask = ask,
		.sink = sink,
		.data = o,
		.context = &o->record,
		.held = &o->run,
	};

	code_run_begin(&b);
}

/* ---- create ---- */

static int env_json(const struct strv *env, char out[CONTEXT_ENV_SIZE], struct err *e)
{
	cleanup(buf_done) struct buf json = buf_make(CONTEXT_ENV_SIZE);

	json_open(&json, '{');
	for (size_t i = 0; i < env->len; i++) {
		size_t name = strcspn(env->items[i], "=");

		if (name == 0)
			return err_set(e, ERR_INVALID, "env: a variable without a name");
		if (i > 0)
			buf_adds(&json, ",");
		json_add_text(&json, env->items[i], name);
		buf_adds(&json, ":");
		json_add_string(&json, env->items[i] + name + 1);
	}
	buf_adds(&json, "}");
	if (buf_overflowed(&json) || !str_copy(out, CONTEXT_ENV_SIZE, buf_str(&json)))
		return err_set(e, ERR_TOO_LARGE, "env is longer than %d bytes", CONTEXT_ENV_SIZE);
	return 0;
}

static int check(const struct context_create *c, struct err *e)
{
	if (c->timeout_ms < 0 || c->timeout_ms > CODE_TIMEOUT_MAX_MS)
		return err_set(e, ERR_INVALID, "timeout_ms must be from 0 to %d",
			       CODE_TIMEOUT_MAX_MS);
	if (c->name[strspn(c->name, NAME_LETTERS)])
		return err_set(e, ERR_INVALID, "name: only letters, digits, '.', '_' and '-'");
	if (strcmp(c->name, ".") == 0 || strcmp(c->name, "..") == 0)
		return err_set(e, ERR_INVALID, "name: \".\" and \"..\" are no names");
	if (c->cwd[0] && c->cwd[0] != '/')
		return err_set(e, ERR_INVALID, "cwd must begin with '/'");
	return 0;
}

static void choose_id(char id[CONTEXT_NAME_SIZE])
{
	char random[ID_RANDOM_CHARS + 1];

	id_random(random, ID_RANDOM_CHARS);
	snprintf(id, CONTEXT_NAME_SIZE, "cx_%s", random);
}

static int fill(const struct context_create *c, struct context_record *r, struct err *e)
{
	enum context_language language =
		context_language_by_name(c->language[0] ? c->language : "python");

	if (language == CONTEXT_UNSET) {
		err_set(e, ERR_INVALID, "there are no contexts for %s", c->language);
		return err_fix(e, "Use python, javascript or typescript.");
	}
	if (check(c, e) < 0 || env_json(c->env, r->env, e) < 0)
		return -1;
	if (!c->id[0])
		choose_id(r->id);
	if ((c->id[0] && !str_copy(r->id, sizeof(r->id), c->id)) ||
	    !str_copy(r->name, sizeof(r->name), c->name[0] ? c->name : r->id) ||
	    !str_copy(r->cwd, sizeof(r->cwd), c->cwd))
		return err_set(e, ERR_TOO_LARGE, "id, name or cwd of the context is too long");
	snprintf(r->language, sizeof(r->language), "%s", context_language_name(language));
	r->timeout_ms = (uint64_t)c->timeout_ms;
	return 0;
}

static void on_erased(struct job *job)
{
	struct context_op *o = container_of(job, struct context_op, job);

	op_end(o, &o->why);
}

static void on_start_finished(struct code_run *r, const struct err *why)
{
	struct context_op *o = r->data;

	if (!why && r->kind == CODE_OK)
		return op_end(o, NULL);
	/* It cannot be had: the record goes, too, and then the answer. */
	if (why)
		o->why = *why;
	else
		err_set(&o->why, ERR_CONFLICT, "the interpreter did not start: %s",
			code_kind_name(r->kind));
	submit(o, erase, on_erased);
}

static const struct code_sink start_sink = { on_run_started, on_run_output, on_run_note,
					     on_start_finished };

static int insert(struct job *job, struct store *s, struct err *e)
{
	struct context_op *o = container_of(job, struct context_op, job);
	struct context_record got;
	struct sandbox sb;
	int n;

	if (find_sandbox(o, s, &sb, e) < 0)
		return -1;
	memcpy(o->record.sandbox, sb.id, sizeof(o->record.sandbox));
	n = store_context_insert(s, &o->record, &got, e);
	if (n < 0)
		return -1;
	if (n == 0 && strcmp(got.language, o->record.language) != 0)
		return err_set(e, ERR_CONFLICT, "the context %s is there, and for %s", got.name,
			       got.language);
	crash_point("context.recorded");
	o->made = n == 1;
	o->record = got;
	return 0;
}

static void on_inserted(struct job *job)
{
	struct context_op *o = container_of(job, struct context_op, job);
	struct code_ask ask = { .verb = CONTEXT_RUN, .timeout_ms = START_TIMEOUT_MS };

	if (job->failed || !o->made)
		return op_end(o, job->failed ? &job->e : NULL);
	memcpy(ask.context, o->record.id, sizeof(ask.context));
	ask.code = xstrdup("");
	begin_run(o, &ask, &start_sink);
}

int context_create(const struct context_create *c, context_done_fn done, void *data,
		   struct err *e)
{
	cleanup(free_ptr) struct context_op *o = op_new(&c->by, c->sandbox, done, data);

	if (fill(c, &o->record, e) < 0)
		return -1;
	submit(take_ptr(o), insert, on_inserted);
	return 0;
}

/* ---- end ---- */

/*
 * Its end is seen first, so that a record stays for what may live. Then the record
 * goes, and whatever a run has begun in between is ended, too.
 */
static void end_interpreter(struct context_op *o);

static int find_record(struct job *job, struct store *s, struct err *e)
{
	struct context_op *o = container_of(job, struct context_op, job);
	struct sandbox sb;

	if (find_sandbox(o, s, &sb, e) < 0)
		return -1;
	return store_context_get(s, sb.id, o->name, &o->record, e);
}

static int erase_ended(struct job *job, struct store *s, struct err *e)
{
	if (erase(job, s, e) < 0)
		return -1;
	crash_point("context.erased");
	return 0;
}

static void on_end_step(struct job *job)
{
	struct context_op *o = container_of(job, struct context_op, job);

	if (job->failed)
		return op_end(o, &job->e);
	end_interpreter(o);
}

/* 0: there is no interpreter any more; a sandbox that does not run has none either. */
static int check_ended(const struct code_run *r, const struct err *why, struct err *e)
{
	if (!why && r->exit.kind == EXEC_KILLED)
		return 0;
	if (why) {
		*e = *why;
		if (!leftovers_unknown(e) &&
		    (why->code == ERR_CONFLICT || why->code == ERR_NOT_FOUND))
			return 0;
		return -1;
	}
	err_set(e, ERR_TIMEOUT, "the end of the context %s was not seen", r->context.id);
	return err_fix(e, "Try again. Putting the sandbox to sleep ends all in it.");
}

static void on_end_finished(struct code_run *r, const struct err *why)
{
	struct context_op *o = r->data;
	struct err e;

	if (check_ended(r, why, &e) < 0)
		return op_end(o, &e);
	if (o->erased)
		return op_end(o, NULL);
	o->erased = true;
	submit(o, erase_ended, on_end_step);
}

static const struct code_sink end_sink = { on_run_started, on_run_output, on_run_note,
					   on_end_finished };

static void end_interpreter(struct context_op *o)
{
	struct code_ask ask = { .verb = CONTEXT_END, .timeout_ms = -1 };

	begin_run(o, &ask, &end_sink);
}

void context_end(const struct caller *by, const char *sandbox, const char *name,
		 context_done_fn done, void *data)
{
	struct context_op *o = op_new(by, sandbox, done, data);

	o->name = name;
	submit(o, find_record, on_end_step);
}

#include "berthd/api/v1/contexts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/code.h"
#include "berthd/exec/context-run.h"
#include "berthd/exec/running-set.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/hash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"

#define START_TIMEOUT_MS 60000 /* for an interpreter to come up, however short its runs may be */
#define NAME_LETTERS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

struct context_body {
	char language[CONTEXT_LANGUAGE_SIZE];
	char name[CONTEXT_NAME_SIZE];
	char cwd[CONTEXT_PATH_SIZE];
	struct strv env;
	int64_t timeout_ms;
};

static const struct json_field body_fields[] = {
	JSON_FIELD_STR(context_body, language),
	JSON_FIELD_STR(context_body, name),
	JSON_FIELD_STR(context_body, cwd),
	JSON_FIELD_MAP(context_body, env),
	JSON_FIELD_INT(context_body, timeout_ms),
	JSON_FIELD_END
};

static void body_done(struct context_body *b)
{
	strv_done(&b->env);
}

static void context_json(struct berthd *b, struct buf *out, const struct context_record *c)
{
	char created[TIME_TEXT_SIZE], used[TIME_TEXT_SIZE];

	time_text(c->created_ms, created);
	time_text(c->last_used_ms, used);
	json_open(out, '{');
	json_str(out, "id", c->id);
	json_str(out, "name", c->name);
	json_str(out, "language", c->language);
	json_str(out, "state", running_set_has(b->running, c->id) ? "busy" : "idle");
	json_str(out, "cwd", c->cwd);
	json_int(out, "timeout_ms", (int64_t)c->timeout_ms);
	json_int(out, "runs", (int64_t)c->runs);
	json_int(out, "restarts", (int64_t)c->restarts);
	json_str(out, "created_at", created);
	json_str(out, "last_used_at", used);
	buf_adds(out, "}");
}

/* ---- create ---- */

struct creation {
	struct context_record record; /* first: the run is made from it */
	struct request *rq;
	struct job job;
	bool is_new;
	bool erased;    /* of a deletion */
	struct err why; /* it could not be had */
};

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

/* With an Idempotency-Key the id follows from it: the second time it is there already. */
static int make_id(const struct request *rq, char id[CONTEXT_NAME_SIZE], struct err *e)
{
	char random[ID_RANDOM_CHARS + 1], hash[HASH_HEX_SIZE];
	cleanup(buf_done) struct buf text = buf_make(4096);
	struct idempotency_use use;

	if (idempotency_read(rq, &use, e) < 0)
		return -1;
	if (use.key[0]) {
		buf_addf(&text, "%s\n%s\n%s\n%s", use.owner, rq->param, use.key, use.body_hash);
		hash_hex(text.data, text.len, hash);
		snprintf(id, CONTEXT_NAME_SIZE, "cx_%.24s", hash);
		return 0;
	}
	id_random(random, ID_RANDOM_CHARS);
	snprintf(id, CONTEXT_NAME_SIZE, "cx_%s", random);
	return 0;
}

static int read_body(struct request *rq, struct context_record *c, struct err *e)
{
	cleanup(body_done) struct context_body b = { .timeout_ms = CODE_TIMEOUT_DEFAULT_MS };
	enum context_language language;

	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, &b, e) < 0)
		return -1;
	language = context_language_by_name(b.language[0] ? b.language : "python");
	if (language == CONTEXT_UNSET) {
		err_set(e, ERR_INVALID, "there are no contexts for %s", b.language);
		return err_fix(e, "Use python, javascript or typescript.");
	}
	if (b.timeout_ms < 0 || b.timeout_ms > CODE_TIMEOUT_MAX_MS)
		return err_set(e, ERR_INVALID, "timeout_ms must be from 0 to %d",
			       CODE_TIMEOUT_MAX_MS);
	if (b.name[0] && b.name[strspn(b.name, NAME_LETTERS)])
		return err_set(e, ERR_INVALID, "name: only letters, digits, '.', '_' and '-'");
	if (strcmp(b.name, ".") == 0 || strcmp(b.name, "..") == 0)
		return err_set(e, ERR_INVALID, "name: \".\" and \"..\" are no names");
	if (b.cwd[0] && b.cwd[0] != '/')
		return err_set(e, ERR_INVALID, "cwd must begin with '/'");
	if (env_json(&b.env, c->env, e) < 0 || make_id(rq, c->id, e) < 0)
		return -1;
	memcpy(c->name, b.name[0] ? b.name : c->id, sizeof(c->name));
	snprintf(c->language, sizeof(c->language), "%s", context_language_name(language));
	memcpy(c->cwd, b.cwd, sizeof(c->cwd));
	c->timeout_ms = (uint64_t)b.timeout_ms;
	return 0;
}

static void on_create_started(struct code_run *r)
{
	(void)r;
}

static bool on_create_output(struct code_run *r, enum frame_type stream, const uint8_t *data,
			     size_t len)
{
	(void)r, (void)stream, (void)data, (void)len;
	return false;
}

static bool on_create_note(struct code_run *r, enum note_type type, const struct buf *json)
{
	(void)r, (void)type, (void)json;
	return false;
}

static int erase(struct job *job, struct store *s, struct err *e)
{
	struct creation *c = container_of(job, struct creation, job);
	bool found;

	return store_context_delete(s, c->record.id, &found, e);
}

static void on_erased(struct job *job)
{
	cleanup(free_ptr) struct creation *c = container_of(job, struct creation, job);

	request_fail(c->rq, &c->why);
}

/* It cannot be had: the record goes, too, and then the answer. */
static void forget(struct creation *c, const struct err *why)
{
	c->why = *why;
	job_submit(c->rq->reactor, request_owner(c->rq), &c->job, erase, on_erased);
}

static void on_create_finished(struct code_run *r, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct creation *c = r->data;
	struct request *rq = r->rq;
	struct err e;

	if (!why && r->kind != CODE_OK) {
		err_set(&e, ERR_CONFLICT, "the interpreter did not start: %s",
			code_kind_name(r->kind));
		why = &e;
	}
	if (why)
		return forget(c, why);
	context_json(rq->reactor->berthd, &body, &c->record);
	free(c);
	request_reply(rq, 201, &body);
}

static const struct code_sink create_sink = { on_create_started, on_create_output,
					      on_create_note, on_create_finished };

static int insert(struct job *job, struct store *s, struct err *e)
{
	struct creation *c = container_of(job, struct creation, job);
	struct context_record got;
	struct sandbox sb;
	int n;

	if (store_sandbox_get(s, request_owner(c->rq), c->rq->param, &sb, e) < 0)
		return -1;
	if (sb.state == SANDBOX_GONE)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s was deleted", sb.id);
	memcpy(c->record.sandbox, sb.id, sizeof(c->record.sandbox));
	n = store_context_insert(s, &c->record, &got, e);
	if (n < 0)
		return -1;
	if (n == 0 && strcmp(got.language, c->record.language) != 0)
		return err_set(e, ERR_CONFLICT, "the context %s is there, and for %s", got.name,
			       got.language);
	crash_point("context.recorded");
	c->is_new = n == 1;
	c->record = got;
	return 0;
}

static void on_inserted(struct job *job)
{
	struct creation *c = container_of(job, struct creation, job);
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = c->rq;
	struct code_ask ask = { .verb = CONTEXT_RUN, .timeout_ms = START_TIMEOUT_MS };
	struct err e = job->e;

	if (job->failed) {
		free(c);
		return request_fail(rq, &e);
	}
	if (!c->is_new) {
		context_json(rq->reactor->berthd, &body, &c->record);
		free(c);
		return request_reply(rq, 200, &body);
	}
	memcpy(ask.context, c->record.id, sizeof(ask.context));
	ask.code = xstrdup("");
	code_run_for(rq, &ask, &create_sink, c);
}

void contexts_create(struct request *rq)
{
	struct creation *c = xcalloc(1, sizeof(*c));
	struct err e;

	c->rq = rq;
	if (read_body(rq, &c->record, &e) < 0) {
		free(c);
		return request_fail(rq, &e);
	}
	job_submit(rq->reactor, request_owner(rq), &c->job, insert, on_inserted);
}

/* ---- look ---- */

struct listing {
	struct berthd *berthd;
	struct buf *out;
};

static void list_row(const struct context_record *c, void *arg)
{
	struct listing *l = arg;

	context_json(l->berthd, l->out, c);
}

static int find_sandbox(struct request *rq, struct store *s, struct sandbox *ret, struct err *e)
{
	if (store_sandbox_get(s, request_owner(rq), rq->param, ret, e) < 0)
		return -1;
	if (ret->state == SANDBOX_GONE)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s was deleted", ret->id);
	return 0;
}

int contexts_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = { rq->reactor->berthd, reply };
	struct sandbox sb;

	if (find_sandbox(rq, s, &sb, e) < 0)
		return -1;
	json_open(reply, '{');
	json_key(reply, "contexts");
	json_open(reply, '[');
	if (store_context_list(s, sb.id, list_row, &l, e) < 0)
		return -1;
	buf_adds(reply, "]");
	json_str(reply, "next", "");
	buf_adds(reply, "}");
	return 0;
}

int contexts_get(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct context_record c;
	struct sandbox sb;

	if (find_sandbox(rq, s, &sb, e) < 0 || store_context_get(s, sb.id, rq->sub, &c, e) < 0)
		return -1;
	context_json(rq->reactor->berthd, reply, &c);
	return 0;
}

/* ---- delete ---- */

/*
 * Its end is seen first, so that a record stays for what may live. Then the record
 * goes, and whatever a run has begun in between is ended, too.
 */
static void end_context(struct creation *c);

static int find_record(struct job *job, struct store *s, struct err *e)
{
	struct creation *c = container_of(job, struct creation, job);
	struct sandbox sb;

	if (find_sandbox(c->rq, s, &sb, e) < 0)
		return -1;
	return store_context_get(s, sb.id, c->rq->sub, &c->record, e);
}

static int erase_ended(struct job *job, struct store *s, struct err *e)
{
	if (erase(job, s, e) < 0)
		return -1;
	crash_point("context.erased");
	return 0;
}

static void on_delete_step(struct job *job)
{
	struct creation *c = container_of(job, struct creation, job);
	struct request *rq = c->rq;
	struct err e = job->e;

	if (!job->failed)
		return end_context(c);
	free(c);
	request_fail(rq, &e);
}

static void delete_step(struct creation *c,
			int (*run)(struct job *job, struct store *s, struct err *e))
{
	job_submit(c->rq->reactor, request_owner(c->rq), &c->job, run, on_delete_step);
}

/* 0: there is no interpreter any more; a sandbox that does not run has none either. */
static int check_ended(const struct code_run *r, const struct err *why, struct err *e)
{
	if (!why && r->exit.kind == EXEC_KILLED)
		return 0;
	if (why && (why->code == ERR_CONFLICT || why->code == ERR_NOT_FOUND))
		return 0;
	if (why) {
		*e = *why;
		return -1;
	}
	err_set(e, ERR_TIMEOUT, "the end of the context %s was not seen", r->context.id);
	return err_fix(e, "Try again. Putting the sandbox to sleep ends all in it.");
}

static void on_end_finished(struct code_run *r, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(1024);
	struct creation *c = r->data;
	struct request *rq = r->rq;
	struct err e;

	if (check_ended(r, why, &e) < 0) {
		free(c);
		return request_fail(rq, &e);
	}
	if (!c->erased) {
		c->erased = true;
		return delete_step(c, erase_ended);
	}
	free(c);
	json_open(&body, '{');
	json_str(&body, "id", r->context.id);
	json_str(&body, "state", "gone");
	buf_adds(&body, "}");
	request_reply(rq, 200, &body);
}

static const struct code_sink end_sink = { on_create_started, on_create_output, on_create_note,
					   on_end_finished };

static void end_context(struct creation *c)
{
	struct code_ask ask = { .verb = CONTEXT_END, .timeout_ms = -1 };

	code_run_for(c->rq, &ask, &end_sink, c);
}

void contexts_delete(struct request *rq)
{
	struct creation *c = xcalloc(1, sizeof(*c));

	c->rq = rq;
	delete_step(c, find_record);
}

/*
 * POST .../execs/{}/kill and .../execs/kill: signals that are delivered, and ends
 * that have been seen.
 */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/exec/kill-all.h"
#include "berthd/exec/signal-name.h"
#include "berthd/front/idempotent-op.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"
#include "store/sandbox.h"

#define GRACE_MAX (3600 * 1000)

/* ---- what is asked ---- */

struct kill_body {
	char signal[16];
	int64_t grace_ms;
	char scope[16], shell[EXEC_ID_SIZE], group[EXEC_ID_SIZE];
};

static const struct json_field one_fields[] = {
	JSON_FIELD_WORD(kill_body, signal),
	JSON_FIELD_INT(kill_body, grace_ms),
	JSON_FIELD_END
};
static const struct json_field scope_fields[] = {
	JSON_FIELD_WORD(kill_body, signal),
	JSON_FIELD_INT(kill_body, grace_ms),
	JSON_FIELD_STR(kill_body, scope),
	JSON_FIELD_STR(kill_body, shell),
	JSON_FIELD_STR(kill_body, group),
	JSON_FIELD_END
};

static int read_body(const struct request *rq, const struct json_field *fields,
		     struct kill_body *b, struct kill_spec *spec, struct err *e)
{
	*b = (struct kill_body){ .signal = "KILL", .scope = "all" };
	if (rq->body.len > 0 && json_read(buf_str(&rq->body), rq->body.len, fields, b, e) < 0)
		return -1;
	if (b->grace_ms < 0 || b->grace_ms > GRACE_MAX)
		return err_set(e, ERR_INVALID, "grace_ms must be 0 to %d", GRACE_MAX);
	*spec = (struct kill_spec){ .grace_ms = (uint64_t)b->grace_ms };
	return signal_by_name(b->signal, &spec->signum, e);
}

/* One request: the exec it names, or all in a scope. */
struct killing {
	struct request *rq;
	struct job job;
	struct idempotent_op *once; /* NULL: it came without a key */
	struct kill_all ask;
	char name[EXEC_ID_SIZE]; /* of a shell or a group */
	struct kill_result result;
};

static struct killing *killing_new(struct request *rq)
{
	struct killing *k = xcalloc(1, sizeof(*k));

	k->rq = rq;
	k->ask = (struct kill_all){
		.by = request_caller(rq),
		.sandbox = rq->param,
		.name = k->name,
	};
	return k;
}

/* The request is the caller's to answer. */
static struct request *killing_free(struct killing *k)
{
	struct request *rq = k->rq;

	idempotent_op_free(k->once);
	journal_unref(k->ask.one);
	free(k);
	return rq;
}

static void killing_fail(struct killing *k, const struct err *why)
{
	struct err e = *why;

	request_fail(killing_free(k), &e);
}

static void killing_json(const struct killing *k, struct buf *out)
{
	json_open(out, '{');
	if (k->ask.one)
		exec_record_members(out, k->ask.one);
	else
		json_int(out, "killed", (int64_t)k->result.killed);
	json_int(out, "leftovers", (int64_t)k->result.leftovers);
	buf_adds(out, "}");
}

static void killing_tell(struct killing *k)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	killing_json(k, &body);
	request_reply(killing_free(k), 200, &body);
}

/* If it could not be stored it is true all the same; the next one under this key will see. */
static void on_stored(void *data, const struct err *why)
{
	(void)why;
	killing_tell(data);
}

/* What is told again under the same key: of an exec its record is, as it is then. */
static void killing_keep(const struct killing *k, struct buf *out)
{
	if (!k->ask.one)
		return killing_json(k, out);
	json_open(out, '{');
	json_int(out, "leftovers", (int64_t)k->result.leftovers);
	buf_adds(out, "}");
}

/* What failed may have been done all the same: its key stays taken. */
static void on_killed(void *data, const struct kill_result *result, const struct err *why)
{
	cleanup(buf_done) struct buf count = buf_make(64);
	struct killing *k = data;

	if (why)
		return killing_fail(k, why);
	k->result = *result;
	if (!k->once)
		return killing_tell(k);
	killing_keep(k, &count);
	idempotent_op_answer(k->once, 200, &count, on_stored, k);
}

static void killing_act(struct killing *k)
{
	kill_all_begin(&k->ask, on_killed, k);
}

/* ---- once ---- */

struct kept {
	int64_t leftovers;
};

static const struct json_field kept_fields[] = {
	JSON_FIELD_INT(kept, leftovers),
	JSON_FIELD_END
};

/* The counts that were; and the exec as it is. */
static void killing_again(struct killing *k)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	const char *first = k->once->first.response;
	struct kept kept = { -1 };
	struct err e;

	if (k->rq->x)
		(void)!http_reply_header(k->rq->x, "Idempotency-Replayed", "true");
	if (!k->ask.one) {
		buf_adds(&body, first);
		return request_reply(killing_free(k), 200, &body);
	}
	if (json_read(first, strlen(first), kept_fields, &kept, &e) == 0 && kept.leftovers >= 0) {
		k->result.leftovers = (uint64_t)kept.leftovers;
		return killing_tell(k);
	}
	/* Of a berthd that did not keep it: what may be repeated is, and says what it saw. */
	idempotent_op_free(take_ptr(k->once));
	if (k->ask.spec.signum == SIGKILL)
		return killing_act(k);
	killing_tell(k);
}

static void on_taken(void *data, const struct err *why)
{
	struct killing *k = data;

	if (why)
		return killing_fail(k, why);
	if (k->once->taken)
		return killing_act(k);
	killing_again(k);
}

static void killing_begin(struct killing *k)
{
	struct err e;

	if (idempotent_op_new(k->rq, &k->once, &e) < 0)
		return killing_fail(k, &e);
	if (!k->once)
		return killing_act(k);
	k->once->repeat = k->ask.spec.signum == SIGKILL;
	idempotent_op_take(k->once, on_taken, k);
}

void execs_kill(struct request *rq)
{
	struct killing *k = killing_new(rq);
	struct kill_body b;
	struct err e;

	if (read_body(rq, one_fields, &b, &k->ask.spec, &e) < 0 ||
	    execs_find(rq, &k->ask.one, &e) < 0)
		return killing_fail(k, &e);
	killing_begin(k);
}

/* Each scope, and the member of the body that names it; 0: none does. */
static const struct scope {
	const char *word;
	size_t name;
} scopes[KILL_SCOPE_COUNT] = {
	[KILL_SCOPE_ALL] = { "all", 0 },
	[KILL_SCOPE_BACKGROUND] = { "background", 0 },
	[KILL_SCOPE_SHELL] = { "shell", offsetof(struct kill_body, shell) },
	[KILL_SCOPE_GROUP] = { "group", offsetof(struct kill_body, group) },
};

/* A name that the scope does not ask for is a mistake, and would end too many. */
static int read_name(const struct kill_body *b, enum kill_scope scope, struct killing *k,
		     struct err *e)
{
	const struct scope *s = &scopes[scope];
	const char *name = s->name ? (const char *)b + s->name : "";
	bool wanted = s->name && k->ask.scope == scope;

	if (wanted && !name[0])
		return err_set(e, ERR_INVALID, "the scope %s needs a %s", s->word, s->word);
	if (!wanted && name[0])
		return err_set(e, ERR_INVALID, "a %s is named, but the scope is %s", s->word,
			       b->scope);
	if (wanted)
		memcpy(k->name, name, sizeof(k->name));
	return 0;
}

static int read_scope(const struct kill_body *b, struct killing *k, struct err *e)
{
	k->ask.scope = KILL_SCOPE_COUNT;
	for (int i = 0; i < KILL_SCOPE_COUNT; i++)
		if (strcmp(b->scope, scopes[i].word) == 0)
			k->ask.scope = (enum kill_scope)i;
	if (k->ask.scope == KILL_SCOPE_COUNT)
		return err_set(e, ERR_INVALID, "scope must be all, background, shell or group");
	for (int i = 0; i < KILL_SCOPE_COUNT; i++)
		if (read_name(b, (enum kill_scope)i, k, e) < 0)
			return -1;
	return 0;
}

/* Nothing to kill: because nothing runs, or because there is no such sandbox? */
static int find_sandbox(struct job *job, struct store *s, struct err *e)
{
	struct killing *k = container_of(job, struct killing, job);
	struct sandbox sb;

	return store_sandbox_get(s, request_owner(k->rq), k->rq->param, &sb, e);
}

static void on_sandbox(struct job *job)
{
	struct killing *k = container_of(job, struct killing, job);

	if (job->failed)
		return killing_fail(k, &job->e);
	killing_begin(k);
}

void execs_kill_scope(struct request *rq)
{
	struct killing *k = killing_new(rq);
	struct kill_body b;
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0 ||
	    read_body(rq, scope_fields, &b, &k->ask.spec, &e) < 0 || read_scope(&b, k, &e) < 0)
		return killing_fail(k, &e);
	if (kill_all_count(&k->ask) > 0)
		return killing_begin(k);
	job_submit(rq->reactor, request_owner(rq), &k->job, find_sandbox, on_sandbox);
}

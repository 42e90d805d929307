/*
 * POST .../execs/{}/kill and .../execs/kill: signals that are delivered, and ends
 * that have been seen.
 */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/exec/exec.h"
#include "berthd/exec/kill.h"
#include "berthd/exec/leftovers.h"
#include "berthd/exec/signal-name.h"
#include "berthd/front/idempotent-op.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
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
		     struct kill_body *b, struct kill_spec *blow, struct err *e)
{
	*b = (struct kill_body){ .signal = "KILL", .scope = "all" };
	if (rq->body.len > 0 && json_read(buf_str(&rq->body), rq->body.len, fields, b, e) < 0)
		return -1;
	if (b->grace_ms < 0 || b->grace_ms > GRACE_MAX)
		return err_set(e, ERR_INVALID, "grace_ms must be 0 to %d", GRACE_MAX);
	*blow = (struct kill_spec){ .grace_ms = (uint64_t)b->grace_ms };
	return signal_by_name(b->signal, &blow->signum, e);
}

/* ---- who is struck ---- */

struct scope;

/* One request: the exec it names, or all in a scope. */
struct killing {
	struct request *rq;
	struct job job;
	struct idempotent_op *once; /* NULL: it came without a key */
	struct kill_spec blow;
	struct journal *one;       /* NULL: all in the scope */
	const struct scope *scope; /* and its name, if it has one */
	char name[EXEC_ID_SIZE];
	size_t left, killed;
	uint64_t leftovers; /* processes of commands that had ended */
	bool failed;
	struct err e;
};

static struct killing *killing_new(struct request *rq)
{
	struct killing *k = xcalloc(1, sizeof(*k));

	k->rq = rq;
	return k;
}

/* The request is the caller's to answer. */
static struct request *killing_free(struct killing *k)
{
	struct request *rq = k->rq;

	idempotent_op_free(k->once);
	journal_unref(k->one);
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
	if (k->one)
		exec_record_members(out, k->one);
	else
		json_int(out, "killed", (int64_t)k->killed);
	json_int(out, "leftovers", (int64_t)k->leftovers);
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
	if (!k->one)
		return killing_json(k, out);
	json_open(out, '{');
	json_int(out, "leftovers", (int64_t)k->leftovers);
	buf_adds(out, "}");
}

/* What failed may have been done all the same: its key stays taken. */
static void killing_end(struct killing *k)
{
	cleanup(buf_done) struct buf count = buf_make(64);

	if (--k->left > 0)
		return;
	if (k->failed)
		return killing_fail(k, &k->e);
	crash_point("exec.killed");
	if (!k->once)
		return killing_tell(k);
	killing_keep(k, &count);
	idempotent_op_answer(k->once, 200, &count, on_stored, k);
}

static bool is_any(const struct killing *k, const struct journal *j)
{
	(void)k;
	(void)j;
	return true;
}

static bool is_background(const struct killing *k, const struct journal *j)
{
	(void)k;
	return j->head.background;
}

static bool is_of_shell(const struct killing *k, const struct journal *j)
{
	return strcmp(j->head.ask.shell, k->name) == 0;
}

static bool is_of_group(const struct killing *k, const struct journal *j)
{
	return strcmp(j->head.group, k->name) == 0;
}

static const struct scope {
	const char *word;
	bool (*has)(const struct killing *k, const struct journal *j);
	size_t name;    /* the member of the body that names it; 0: none does */
	bool leftovers; /* and what ended commands left running */
} scopes[] = {
	{ "all", is_any, 0, true },
	{ "background", is_background, 0, false },
	{ "shell", is_of_shell, offsetof(struct kill_body, shell), false },
	{ "group", is_of_group, offsetof(struct kill_body, group), false },
};

static void on_leftovers(void *data, uint64_t killed, const struct err *why)
{
	struct killing *k = data;

	k->leftovers += killed;
	if (why) {
		k->failed = true;
		k->e = *why;
	}
	killing_end(k);
}

static void kill_leftovers(struct killing *k, const char *exec)
{
	struct request *rq = k->rq;
	struct init_dial_ask way = { rq->reactor, rq->id, request_owner(rq), rq->param, true };

	k->left++;
	leftovers_kill(&way, exec, on_leftovers, k);
}

/* One exec that is struck. */
struct struck {
	struct killing *killing;
	struct journal *journal;
};

/* With all it had started: what ended it otherwise may have left something. */
static bool tree_was_killed(struct journal *j)
{
	struct journal_view v;

	journal_look(j, &v);
	return v.slot.exit.signum == SIGKILL &&
	       (v.slot.exit.kind == EXEC_KILLED || v.slot.exit.kind == EXEC_TIMED_OUT);
}

static void on_struck(void *data, const struct err *why)
{
	struct struck *s = data;
	struct killing *k = s->killing;
	bool to_the_end = k->blow.signum == SIGKILL || k->blow.grace_ms > 0;

	if (why) {
		k->failed = true;
		k->e = *why;
	} else {
		k->killed++;
		if (to_the_end && !tree_was_killed(s->journal))
			kill_leftovers(k, s->journal->head.ask.id);
	}
	journal_unref(s->journal);
	free(s);
	killing_end(k);
}

static void strike(struct killing *k, struct journal *j)
{
	struct struck *s = xcalloc(1, sizeof(*s));

	*s = (struct struck){ k, journal_ref(j) };
	k->left++;
	exec_kill(k->rq->reactor, j, &k->blow, on_struck, s);
}

static bool is_in_scope(const struct killing *k, const struct journal *j)
{
	const char *owner = request_owner(k->rq);

	return (!owner || strcmp(owner, j->head.owner) == 0) && k->scope->has(k, j);
}

static void strike_one(void *data, struct journal *j)
{
	struct killing *k = data;
	struct journal_view v;

	journal_look(j, &v);
	if (v.slot.state != JOURNAL_RUNNING || !is_in_scope(k, j))
		return;
	strike(k, j);
}

static void killing_act(struct killing *k)
{
	bool kill = k->blow.signum == SIGKILL;
	struct journal_glance now = { 0 };

	k->left = 1; /* until all are struck */
	if (k->one)
		journal_glance(k->one, &now);
	else
		journals_running(k->rq->reactor->berthd->journals, k->rq->param, strike_one, k);
	if (k->one && now.state == JOURNAL_RUNNING)
		strike(k, k->one);
	if (kill && (k->one ? now.state != JOURNAL_RUNNING : k->scope->leftovers))
		kill_leftovers(k, k->one ? k->one->head.ask.id : "");
	killing_end(k);
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
	if (!k->one) {
		buf_adds(&body, first);
		return request_reply(killing_free(k), 200, &body);
	}
	if (json_read(first, strlen(first), kept_fields, &kept, &e) == 0 && kept.leftovers >= 0) {
		k->leftovers = (uint64_t)kept.leftovers;
		return killing_tell(k);
	}
	/* Of a berthd that did not keep it: what may be repeated is, and says what it saw. */
	idempotent_op_free(take_ptr(k->once));
	if (k->blow.signum == SIGKILL)
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
	k->once->repeat = k->blow.signum == SIGKILL;
	idempotent_op_take(k->once, on_taken, k);
}

void execs_kill(struct request *rq)
{
	struct killing *k = killing_new(rq);
	struct kill_body b;
	struct err e;

	if (read_body(rq, one_fields, &b, &k->blow, &e) < 0 || execs_find(rq, &k->one, &e) < 0)
		return killing_fail(k, &e);
	killing_begin(k);
}

/* A name that the scope does not ask for is a mistake, and would strike too many. */
static int read_name(const struct kill_body *b, const struct scope *s, struct killing *k,
		     struct err *e)
{
	const char *name = s->name ? (const char *)b + s->name : "";
	bool wanted = s->name && k->scope == s;

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
	for (size_t i = 0; i < array_len(scopes); i++)
		if (strcmp(b->scope, scopes[i].word) == 0)
			k->scope = &scopes[i];
	if (!k->scope)
		return err_set(e, ERR_INVALID, "scope must be all, background, shell or group");
	for (size_t i = 0; i < array_len(scopes); i++)
		if (read_name(b, &scopes[i], k, e) < 0)
			return -1;
	return 0;
}

/* Nothing to strike: because nothing runs, or because there is no such sandbox? */
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

static void count_one(void *data, struct journal *j)
{
	struct killing *k = data;

	k->left += is_in_scope(k, j);
}

void execs_kill_scope(struct request *rq)
{
	struct killing *k = killing_new(rq);
	struct kill_body b;
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0 ||
	    read_body(rq, scope_fields, &b, &k->blow, &e) < 0 || read_scope(&b, k, &e) < 0)
		return killing_fail(k, &e);
	journals_running(rq->reactor->berthd->journals, rq->param, count_one, k);
	if (k->left > 0)
		return killing_begin(k);
	job_submit(rq->reactor, request_owner(rq), &k->job, find_sandbox, on_sandbox);
}

/*
 * POST .../execs/{}/kill and .../execs/kill: signals that are delivered, and ends
 * that have been seen.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/berthd.h"
#include "api/exec/exec.h"
#include "api/exec/execs.h"
#include "api/exec/signal-name.h"
#include "api/exec/strike.h"
#include "api/life/once.h"
#include "lib/crash.h"
#include "lib/json.h"
#include "lib/str.h"

#define GRACE_MAX (3600 * 1000)

/* ---- what is asked ---- */

static int read_blow(const struct json *body, struct exec_blow *b, struct err *e)
{
	const struct json *signal = body ? json_get(body, "signal") : NULL;
	int64_t grace = body ? json_get_int(body, "grace_ms") : 0;
	char text[32];

	*b = (struct exec_blow){ .signum = SIGKILL };
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

/* ---- who is struck ---- */

struct scope;

/* One request: the exec it names, or all in a scope. */
struct killing {
	struct request *rq;
	struct once *once; /* NULL: it came without a key */
	struct exec_blow blow;
	struct journal *one;       /* NULL: all in the scope */
	const struct scope *scope; /* and its name, if it has one */
	char name[EXEC_ID_SIZE];
	size_t left, killed;
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

	once_free(k->once);
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
	if (k->one)
		return exec_record_json(out, k->one);
	json_open(out, '{');
	json_int(out, "killed", (int64_t)k->killed);
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
	if (!k->one)
		killing_json(k, &count);
	once_answer(k->once, 200, &count, on_stored, k);
}

static void on_struck(void *data, const struct err *why)
{
	struct killing *k = data;

	if (why) {
		k->failed = true;
		k->e = *why;
	} else {
		k->killed++;
	}
	killing_end(k);
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

/* One that is named is so by the member of the body that is called like it. */
static const struct scope {
	const char *word;
	bool named;
	bool (*has)(const struct killing *k, const struct journal *j);
} scopes[] = {
	{ "all", false, is_any },
	{ "background", false, is_background },
	{ "shell", true, is_of_shell },
	{ "group", true, is_of_group },
};

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
	k->left++;
	exec_strike(k->rq->reactor, j, &k->blow, on_struck, k);
}

static void killing_act(struct killing *k)
{
	k->left = 1; /* until all are struck */
	if (k->one) {
		k->left++;
		exec_strike(k->rq->reactor, k->one, &k->blow, on_struck, k);
	} else {
		journals_running(&k->rq->reactor->berthd->journals, k->rq->param, strike_one, k);
	}
	killing_end(k);
}

/* ---- once ---- */

/* The count that was, or the exec as it is. */
static void killing_again(struct killing *k)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	if (k->rq->x)
		(void)!http_reply_header(k->rq->x, "Idempotency-Replayed", "true");
	if (k->one)
		return killing_tell(k);
	buf_adds(&body, k->once->first.response);
	request_reply(killing_free(k), 200, &body);
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

	if (once_new(k->rq, &k->once, &e) < 0)
		return killing_fail(k, &e);
	if (!k->once)
		return killing_act(k);
	k->once->repeat = k->blow.signum == SIGKILL;
	once_take(k->once, on_taken, k);
}

void execs_kill(struct request *rq)
{
	cleanup(json_free) struct json *body = NULL;
	struct killing *k = killing_new(rq);
	struct err e;

	if (read_body(rq, &body, &e) < 0 || read_blow(body, &k->blow, &e) < 0 ||
	    execs_find(rq, &k->one, &e) < 0)
		return killing_fail(k, &e);
	killing_begin(k);
}

static int read_scope(const struct json *body, struct killing *k, struct err *e)
{
	const char *word = body ? json_get_str(body, "scope") : "";

	for (size_t i = 0; i < array_len(scopes) && !k->scope; i++)
		if (!word[0] || strcmp(word, scopes[i].word) == 0)
			k->scope = &scopes[i];
	if (!k->scope)
		return err_set(e, ERR_INVALID, "scope must be all, background, shell or group");
	if (k->scope->named &&
	    (!str_copy(k->name, sizeof(k->name), json_get_str(body, word)) || !k->name[0]))
		return err_set(e, ERR_INVALID, "the scope %s needs a %s", word, word);
	return 0;
}

void execs_kill_scope(struct request *rq)
{
	cleanup(json_free) struct json *body = NULL;
	struct killing *k = killing_new(rq);
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0 || read_body(rq, &body, &e) < 0 ||
	    read_scope(body, k, &e) < 0 || read_blow(body, &k->blow, &e) < 0)
		return killing_fail(k, &e);
	killing_begin(k);
}

#include "berthd/api/v1/contexts.h"

#include <stdio.h>

#include "berthd/exec/context-run.h"
#include "berthd/exec/context.h"
#include "berthd/exec/running-set.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "lib/hash.h"
#include "lib/json.h"
#include "lib/time.h"
#include "store/sandbox.h"

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

/* With an Idempotency-Key the id follows from it: the second time it is there already. */
static int make_id(const struct request *rq, char id[CONTEXT_NAME_SIZE], struct err *e)
{
	char hash[HASH_HEX_SIZE];
	cleanup(buf_done) struct buf text = buf_make(4096);
	struct idempotency_use use = { 0 };

	if (idempotency_read(rq, &use, e) < 0)
		return -1;
	id[0] = '\0';
	if (!use.key[0])
		return 0;
	buf_addf(&text, "%s\n%s\n%s\n%s", use.owner, rq->param, use.key, use.body_hash);
	hash_hex(text.data, text.len, hash);
	snprintf(id, CONTEXT_NAME_SIZE, "cx_%.24s", hash);
	return 0;
}

static void on_created(void *data, const struct context_record *c, bool made,
		       const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = data;

	if (why)
		return request_fail(rq, why);
	context_json(rq->reactor->berthd, &body, c);
	request_reply(rq, made ? 201 : 200, &body);
}

void contexts_create(struct request *rq)
{
	cleanup(body_done) struct context_body b = { .timeout_ms = CODE_TIMEOUT_DEFAULT_MS };
	char id[CONTEXT_NAME_SIZE] = "";
	struct context_create c = {
		.by = request_caller(rq),
		.sandbox = rq->param,
		.id = id,
		.language = b.language,
		.name = b.name,
		.cwd = b.cwd,
		.env = &b.env,
	};
	struct err e;

	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, &b, &e) < 0 ||
	    make_id(rq, id, &e) < 0)
		return request_fail(rq, &e);
	c.timeout_ms = b.timeout_ms;
	if (context_create(&c, on_created, rq, &e) < 0)
		request_fail(rq, &e);
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

static void on_ended(void *data, const struct context_record *c, bool made, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(1024);
	struct request *rq = data;

	(void)made;
	if (why)
		return request_fail(rq, why);
	json_open(&body, '{');
	json_str(&body, "id", c->id);
	json_str(&body, "state", "gone");
	buf_adds(&body, "}");
	request_reply(rq, 200, &body);
}

void contexts_delete(struct request *rq)
{
	struct caller by = request_caller(rq);

	context_end(&by, rq->param, rq->sub, on_ended, rq);
}

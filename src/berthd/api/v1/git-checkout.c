#include "berthd/api/v1/git-checkout.h"

#include <string.h>

#include "berthd/exec/checkout.h"
#include "berthd/front/idempotency.h"
#include "lib/json.h"
#include "lib/str.h"

static const struct json_field fields[] = {
	JSON_FIELD_STR(git_checkout, url, .required = true),
	JSON_FIELD_STR(git_checkout, branch),
	JSON_FIELD_STR(git_checkout, ref),
	JSON_FIELD_STR(git_checkout, session_branch),
	JSON_FIELD_BOOL(git_checkout, reuse),
	JSON_FIELD_STR(git_checkout, path),
	JSON_FIELD_STR(git_checkout, username),
	JSON_FIELD_STR(git_checkout, password),
	{ "token", JSON_STR, offsetof(struct git_checkout, password), GIT_SECRET_SIZE, false },
	JSON_FIELD_INT(git_checkout, depth),
	JSON_FIELD_INT(git_checkout, timeout_ms),
	JSON_FIELD_END
};

static void add_text(struct buf *json, const char *name, struct bytes text)
{
	const char *chars = (const char *)text.data;

	json_key(json, name);
	if (text.len > 0 && utf8_valid_prefix(chars, text.len) == text.len)
		json_add_text(json, chars, text.len);
	else
		buf_adds(json, "null");
}

static void on_done(void *data, const struct checkout_result *result, const struct err *why)
{
	cleanup(buf_done) struct buf json = buf_make(64 * 1024);
	struct request *rq = data;

	if (why)
		return request_fail(rq, why);
	json_open(&json, '{');
	json_str(&json, "path", result->path);
	add_text(&json, "commit", result->commit);
	add_text(&json, "branch", result->branch);
	buf_adds(&json, "}");
	request_reply(rq, 200, &json);
}

static void on_gone(struct request *rq)
{
	checkout_cancel(rq->data);
	request_end(rq, 499);
}

static void ask_done(struct git_checkout *ask)
{
	explicit_bzero(ask, sizeof(*ask));
}

void git_checkout(struct request *rq)
{
	cleanup(ask_done) struct git_checkout ask = { 0 };
	struct checkout_begin b = { .sandbox = rq->param, .ask = &ask };
	struct caller by = request_caller(rq);
	struct err e;

	if (json_read(buf_str(&rq->body), rq->body.len, fields, &ask, &e) < 0 ||
	    git_checkout_check(&ask, &e) < 0 || idempotency_hashes(rq, b.key, b.body, &e) < 0)
		return request_fail(rq, &e);
	rq->on_gone = on_gone;
	checkout_begin(&by, &b, on_done, rq, &rq->data);
}

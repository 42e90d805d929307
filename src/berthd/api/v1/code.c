#include "berthd/api/v1/code.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"
#include "proto/exec.h"

struct code_body {
	char *code;
	char context[CONTEXT_NAME_SIZE];
	char language[CONTEXT_LANGUAGE_SIZE];
	struct strv env;
	int64_t timeout_ms;
};

static const struct json_field body_fields[] = {
	JSON_FIELD_TEXT(code_body, code, .required = true),
	JSON_FIELD_STR(code_body, context),
	JSON_FIELD_STR(code_body, language),
	JSON_FIELD_MAP(code_body, env),
	JSON_FIELD_INT(code_body, timeout_ms),
	JSON_FIELD_END
};

static void body_done(struct code_body *b)
{
	free(b->code);
	strv_done(&b->env);
}

static int read_body(struct request *rq, struct code_ask *ask, struct err *e)
{
	cleanup(body_done) struct code_body b = { .timeout_ms = -1 };

	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, &b, e) < 0)
		return -1;
	if (b.timeout_ms < -1 || b.timeout_ms > CODE_TIMEOUT_MAX_MS)
		return err_set(e, ERR_INVALID, "timeout_ms must be from 0 to %d",
			       CODE_TIMEOUT_MAX_MS);
	ask->verb = CONTEXT_RUN;
	ask->language = context_language_by_name(b.language);
	if (b.language[0] && ask->language == CONTEXT_UNSET) {
		err_set(e, ERR_INVALID, "there are no contexts for %s", b.language);
		return err_fix(e, "Use python, javascript or typescript.");
	}
	for (size_t i = 0; i < b.env.len; i++)
		if (b.env.items[i][0] == '=')
			return err_set(e, ERR_INVALID, "env: a variable without a name");
	memcpy(ask->context, b.context, sizeof(ask->context));
	ask->timeout_ms = b.timeout_ms;
	ask->code = take_ptr(b.code);
	ask->env = b.env;
	b.env = (struct strv){ 0 };
	return 0;
}

static void go(struct request *rq)
{
	cleanup(code_ask_done) struct code_ask ask = { 0 };
	struct err e;

	if (read_body(rq, &ask, &e) < 0)
		return request_fail(rq, &e);
	if (rq->wants_events)
		code_events(rq, &ask);
	else
		code_json(rq, &ask);
}

/* A key that was used before: the code ran, or may have, and is not run again. */
static void refuse(struct request *rq)
{
	struct err e;

	err_set(&e, ERR_CONFLICT,
		"this Idempotency-Key was used before, and its code is not run a second time; how "
		"the first time ended is not kept");
	err_fix(&e, "Look at what the context holds now; take a new key to run it again.");
	request_fail(rq, &e);
}

void code_route(struct request *rq)
{
	idempotency_claim(rq, go, refuse);
}

void code_run_for(struct request *rq, struct code_ask *ask, const struct code_sink *sink,
		  void *data)
{
	struct caller by = request_caller(rq);
	struct code_begin b = {
		.by = &by,
		.sandbox = rq->param,
		.ask = ask,
		.sink = sink,
		.data = data,
		.rq = rq,
		.held = &rq->data,
	};

	code_run_begin(&b);
}

/* POST /v1/sandboxes/{}/exec: what is asked, and which of the three answers is wanted. */
#include <stdlib.h>
#include <string.h>

#include "api/exec/sinks.h"
#include "http/tunnel.h"
#include "lib/json.h"

#define STDIN_PROTOCOL "berth-exec"

struct exec_body {
	struct strv argv, env;
	char *command;
	char cwd[EXEC_CWD_SIZE];
	char *stdin_text;
	int64_t timeout_ms;
};

static const struct json_field body_fields[] = {
	JSON_FIELD_STRV(exec_body, argv),
	JSON_FIELD_TEXT(exec_body, command),
	JSON_FIELD_STR(exec_body, cwd),
	JSON_FIELD_MAP(exec_body, env),
	{ "stdin", JSON_TEXT, offsetof(struct exec_body, stdin_text), sizeof(char *), false },
	JSON_FIELD_INT(exec_body, timeout_ms),
	JSON_FIELD_END
};

static void body_done(struct exec_body *b)
{
	strv_done(&b->argv);
	strv_done(&b->env);
	free(b->command);
	free(b->stdin_text);
}

static int read_body(struct request *rq, struct exec_body *b, struct exec_request *ask,
		     struct err *e)
{
	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, b, e) < 0)
		return -1;
	if (!b->command == !b->argv.len)
		return err_set(e, ERR_INVALID, "give either argv or command, and not both");
	if (b->timeout_ms < 0)
		return err_set(e, ERR_INVALID, "timeout_ms must not be negative");
	if (b->command) {
		strv_add(&b->argv, "/bin/sh");
		strv_add(&b->argv, "-c");
		strv_add(&b->argv, b->command);
	}
	ask->argv = b->argv;
	ask->env = b->env;
	b->argv = b->env = (struct strv){ 0 };
	ask->timeout_ms = (uint64_t)b->timeout_ms;
	ask->flags = b->stdin_text ? EXEC_STDIN : 0;
	memcpy(ask->cwd, b->cwd, sizeof(ask->cwd));
	return exec_request_check(ask, e);
}

void exec_route(struct request *rq)
{
	cleanup(body_done) struct exec_body body = { 0 };
	cleanup(exec_request_done) struct exec_request ask = { 0 };
	struct err e;

	if (rq->x && rq->x->upgrade && strcmp(rq->x->upgrade, STDIN_PROTOCOL) == 0)
		return exec_tunnel(rq);
	if (read_body(rq, &body, &ask, &e) < 0)
		return request_fail(rq, &e);
	if (rq->wants_events)
		exec_events(rq, &ask, take_ptr(body.stdin_text));
	else
		exec_json(rq, &ask, take_ptr(body.stdin_text));
}

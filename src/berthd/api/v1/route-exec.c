/* POST /v1/sandboxes/{}/exec: what is asked, and which of the three answers is wanted. */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/exec-replies.h"
#include "berthd/api/v1/execs.h"
#include "berthd/api/v1/shells.h"
#include "berthd/front/idempotency.h"
#include "core/wrapper.h"
#include "http/tunnel.h"
#include "lib/json.h"

#define STDIN_PROTOCOL "berth-exec"

struct exec_body {
	char id[EXEC_ID_SIZE];
	bool background, keep, stdin_open;
	struct strv argv, env;
	char *command;
	char cwd[EXEC_CWD_SIZE];
	char shell[EXEC_ID_SIZE], group[EXEC_ID_SIZE];
	char *stdin_text;
	int64_t timeout_ms;
};

static const struct json_field body_fields[] = {
	JSON_FIELD_STR(exec_body, id),
	JSON_FIELD_STRV(exec_body, argv),
	JSON_FIELD_TEXT(exec_body, command),
	JSON_FIELD_STR(exec_body, cwd),
	JSON_FIELD_STR(exec_body, shell),
	JSON_FIELD_STR(exec_body, group),
	JSON_FIELD_MAP(exec_body, env),
	{ "stdin", JSON_TEXT, offsetof(struct exec_body, stdin_text), sizeof(char *), false },
	JSON_FIELD_BOOL(exec_body, stdin_open),
	JSON_FIELD_INT(exec_body, timeout_ms),
	JSON_FIELD_BOOL(exec_body, background),
	JSON_FIELD_BOOL(exec_body, keep),
	JSON_FIELD_END
};

static void body_done(struct exec_body *b)
{
	strv_done(&b->argv);
	strv_done(&b->env);
	free(b->command);
	free(b->stdin_text);
}

static int read_body(const struct request *rq, struct exec_body *b, struct exec_request *ask,
		     struct err *e)
{
	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, b, e) < 0)
		return -1;
	if (exec_words_check(b->argv.len > 0, b->command != NULL, e) < 0)
		return -1;
	if (b->timeout_ms < 0)
		return err_set(e, ERR_INVALID, "timeout_ms must not be negative");
	if (b->shell[0] && !b->command)
		return err_set(e, ERR_INVALID, "a shell runs a command, not an argv");
	if (b->group[0] && exec_id_check(b->group, e) < 0)
		return err_wrap(e, "group");
	if (b->command && !b->shell[0]) {
		strv_add(&b->argv, "/bin/sh");
		strv_add(&b->argv, "-c");
	}
	if (b->command)
		strv_add(&b->argv, b->command);
	ask->argv = b->argv;
	ask->env = b->env;
	b->argv = b->env = (struct strv){ 0 };
	ask->timeout_ms = (uint64_t)b->timeout_ms;
	ask->flags = b->stdin_text || b->stdin_open ? EXEC_STDIN : 0;
	memcpy(ask->id, b->id, sizeof(ask->id));
	memcpy(ask->cwd, b->cwd, sizeof(ask->cwd));
	memcpy(ask->shell, b->shell, sizeof(ask->shell));
	if (exec_id_allow(rq, ask->id, e) < 0)
		return -1;
	return exec_request_check(ask, e);
}

static void ask_done(struct exec_ask *a)
{
	exec_request_done(&a->begin.ask);
	exec_input_done(&a->input);
}

static void begin(struct request *rq, bool ready);

static void begin_in_shell(struct request *rq)
{
	begin(rq, true);
}

/* `ready`: the shell it names is there. */
static void begin(struct request *rq, bool ready)
{
	cleanup(body_done) struct exec_body body = { 0 };
	cleanup(ask_done) struct exec_ask ask = { .begin.sandbox = rq->param };
	struct err e;

	if (read_body(rq, &body, &ask.begin.ask, &e) < 0 ||
	    idempotency_hashes(rq, ask.begin.key, ask.begin.body, &e) < 0)
		return request_fail(rq, &e);
	if (body.shell[0] && !ready)
		return shells_ensure(rq, body.shell, begin_in_shell);
	buf_done(&rq->body); /* all was copied from it, and the command may run for days */
	exec_input_init(&ask.input, take_ptr(body.stdin_text));
	ask.input.stay_open = body.stdin_open;
	ask.begin.background = body.background;
	ask.begin.keep = body.keep;
	memcpy(ask.begin.group, body.group, sizeof(ask.begin.group));
	if (body.background)
		exec_later(rq, &ask);
	else if (rq->wants_events)
		exec_events(rq, &ask);
	else
		exec_json(rq, &ask);
}

int exec_words_check(bool argv, bool command, struct err *e)
{
	if (argv && command)
		return err_set(e, ERR_INVALID, "give either argv or command, and not both");
	if (!argv && !command)
		return err_set(e, ERR_INVALID, "argv or command is missing: what is to be run?");
	return 0;
}

int exec_id_allow(const struct request *rq, const char *id, struct err *e)
{
	if (!wrapper_exec_is(id) || !request_owner(rq))
		return 0;
	err_set(e, ERR_INVALID, "exec ids like %.40s are those of wrappers", id);
	return err_fix(e, "Choose another id, or give none.");
}

void exec_begin_for(struct request *rq, struct exec_begin *b, struct tail *t)
{
	struct caller by = request_caller(rq);

	exec_begin(&by, b, t);
}

void exec_route(struct request *rq)
{
	if (rq->x && rq->x->upgrade && strcmp(rq->x->upgrade, STDIN_PROTOCOL) == 0)
		return exec_tunnel(rq);
	begin(rq, false);
}

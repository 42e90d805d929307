/* berth exec: one more command in a sandbox that is there. */
#include <string.h>

#include "cli/client.h"
#include "cli/exec-stream.h"
#include "cli/say.h"

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_LIST, exec_options, env, "env", 'e', "NAME=VALUE", "set in its environment"),
	OPTION(OPTION_TEXT, exec_options, cwd, "workdir", 'w', "DIR", "where it starts"),
	OPTION(OPTION_DURATION, exec_options, timeout_ms, "timeout", 0, "TIME",
	       "kill it after this: 30s, 5m"),
	OPTION(OPTION_TEXT, exec_options, shell, "shell", 's', "NAME",
	       "as a line of this persistent shell"),
	OPTION(OPTION_FLAG, exec_options, interactive, "interactive", 'i', NULL,
	       "forward standard input from a terminal too"),
	OPTION(OPTION_FLAG, exec_options, tty, "tty", 't', NULL, "run it on a terminal"),
	OPTION(OPTION_FLAG, exec_options, background, "background", 'b', NULL,
	       "print its id and let it go on"),
	OPTION_ROWS_END
};
/* clang-format on */

/* There already is fine. */
static int shell_make(const struct context *c, const char *sandbox, const char *name,
		      struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX), body = buf_make(1024);

	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, sandbox);
	buf_adds(&path, "/shells");
	json_open(&body, '{');
	json_str(&body, "name", name);
	buf_adds(&body, "}");
	if (client_call(c, "POST", buf_str(&path), buf_str(&body), &reply, e) < 0 &&
	    e->code != ERR_CONFLICT)
		return -1;
	return 0;
}

static void add_list(struct buf *body, const char *name, const struct strv *list)
{
	json_key(body, name);
	json_open(body, '[');
	for (size_t i = 0; i < list->len; i++) {
		if (i > 0)
			buf_adds(body, ",");
		json_add_string(body, list->items[i]);
	}
	buf_adds(body, "]");
}

static void add_env(struct buf *body, const struct strv *env)
{
	json_key(body, "env");
	json_open(body, '{');
	for (size_t i = 0; i < env->len; i++) {
		const char *value = strchr(env->items[i], '=');
		cleanup(buf_done) struct buf name = buf_make(EXEC_BYTES_MAX);

		buf_add(&name, env->items[i], (size_t)(value - env->items[i]));
		json_str(body, buf_str(&name), value + 1);
	}
	buf_adds(body, "}");
}

static int begin(const struct context *c, const char *sandbox, const struct exec_request *q,
		 struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	cleanup(buf_done) struct buf body = buf_make(8UL * EXEC_BYTES_MAX);

	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, sandbox);
	buf_adds(&path, "/exec");
	json_open(&body, '{');
	if (q->shell[0]) {
		json_str(&body, "shell", q->shell);
		json_str(&body, "command", q->argv.items[0]);
	} else {
		add_list(&body, "argv", &q->argv);
	}
	add_env(&body, &q->env);
	json_str(&body, "cwd", q->cwd);
	json_int(&body, "timeout_ms", (int64_t)q->timeout_ms);
	json_bool(&body, "background", true);
	buf_adds(&body, "}");
	if (client_call(c, "POST", buf_str(&path), buf_str(&body), &reply, e) < 0)
		return -1;
	if (c->json)
		return say_out(buf_str(&reply.text), reply.text.len, e);
	buf_clear(&path);
	buf_addf(&path, "%s\n", json_get_str(reply.tree, "id"));
	return say_out(buf_str(&path), path.len, e);
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	cleanup(exec_request_done) struct exec_request request = { 0 };
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };
	const struct exec_options *o = given;

	if (exec_stream_request(given, args->items + 1, args->len - 1, &request, e) < 0 ||
	    interrupt_open(&stop, e) < 0 ||
	    (request.shell[0] && shell_make(c, args->items[0], request.shell, e) < 0))
		return -1;
	if (o->background)
		return begin(c, args->items[0], &request, e);
	return exec_stream_command(c, args->items[0], o, &request, &stop, e);
}

const struct command cmd_exec = {
	.name = "exec",
	.usage = "SANDBOX [OPTIONS] [--] COMMAND...",
	.help = "Run a command in a sandbox",
	.options = options,
	.record_size = sizeof(struct exec_options),
	.min = 2,
	.max = COMMAND_ARGS_ANY,
	.own = 1,
	.run = run,
};

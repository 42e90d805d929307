/* berth execs, berth kill: the commands of a sandbox, and an end to one. */
#include <stdio.h>
#include <string.h>

#include "cli/list.h"
#include "cli/say.h"

static void add_path(struct buf *path, const char *sandbox)
{
	buf_adds(path, "/v1/sandboxes/");
	fetch_escape(path, sandbox);
	buf_adds(path, "/execs");
}

static void add_row(struct table *t, const struct json *x)
{
	cleanup(buf_done) struct buf command = buf_make(256);
	const struct json *argv = json_get(x, "argv");
	const char *kind = json_get_str(x, "kind");

	for (size_t i = 0; i < json_len(argv); i++)
		buf_addf(&command, "%s%s", i ? " " : "", json_text(json_at(argv, i)));
	table_add(t, json_get_str(x, "id"));
	table_add(t, kind[0] ? kind : "running");
	if (strcmp(kind, "exited") == 0)
		table_addf(t, "%lld", (long long)json_get_int(x, "exit_code"));
	else
		table_add(t, "-");
	table_addf(t, "%.19s", json_get_str(x, "started_at"));
	table_addf(t, "%lld", (long long)json_get_int(x, "output_bytes"));
	table_addf(t, "%.60s", buf_str(&command));
}

static const struct list execs = {
	.member = "execs",
	.titles = { "EXEC", "STATE", "CODE", "STARTED", "BYTES", "COMMAND" },
	.add = add_row,
	.time = "started_at",
};

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

	(void)options;
	add_path(&path, args->items[0]);
	return list_show(c, buf_str(&path), &execs, e);
}

const struct command cmd_execs = {
	.name = "execs",
	.usage = "SANDBOX",
	.help = "List a sandbox's commands",
	.details = "Those that run and those that ended, the newest last. With --json one object\n"
		   "a page, in the order of ids.",
	.min = 1,
	.max = 1,
	.run = ls,
};

struct kill_options {
	const char *signal;
	uint64_t grace_ms;
};

/* clang-format off */
static const struct option_row kill_options[] = {
	OPTION(OPTION_TEXT, kill_options, signal, "signal", 's', "NAME", "KILL if not given"),
	OPTION(OPTION_DURATION, kill_options, grace_ms, "grace", 'g', "TIME",
	       "then KILL: 500ms, 5s"),
	OPTION_ROWS_END
};
/* clang-format on */

/* KILL leaves no other end to one that ran: then it had ended before. */
static void say_if_ended(const struct kill_options *o, const struct json *x)
{
	const char *kind = json_get_str(x, "kind");

	if (o->grace_ms > 0 || (o->signal && strcmp(o->signal, "KILL") != 0) || !kind[0] ||
	    strcmp(kind, "killed") == 0)
		return;
	say("%s had ended before (%s); processes it had left, now killed: %lld",
	    json_get_str(x, "id"), kind, (long long)json_get_int(x, "leftovers"));
}

static int run_kill(const struct context *c, const void *given, const struct strv *args,
		    struct err *e)
{
	const struct kill_options *o = given;
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX), body = buf_make(1024);

	add_path(&path, args->items[0]);
	buf_adds(&path, "/");
	fetch_escape(&path, args->items[1]);
	buf_adds(&path, "/kill");
	json_open(&body, '{');
	json_str(&body, "signal", o->signal ? o->signal : "KILL");
	json_int(&body, "grace_ms", (int64_t)o->grace_ms);
	buf_adds(&body, "}");
	if (client_call(c, "POST", buf_str(&path), buf_str(&body), &reply, e) < 0)
		return -1;
	say_if_ended(o, reply.tree);
	return c->json ? say_out(buf_str(&reply.text), reply.text.len, e) : 0;
}

const struct command cmd_kill = {
	.name = "kill",
	.usage = "[OPTIONS] SANDBOX EXEC",
	.help = "Signal a command and all it started",
	.details = "With KILL it returns after all of them were seen gone.",
	.options = kill_options,
	.record_size = sizeof(struct kill_options),
	.min = 2,
	.max = 2,
	.run = run_kill,
};

/* berth code: a piece of code in a context of a sandbox, and what it says as it runs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/exit-code.h"
#include "cli/say.h"
#include "cli/sse.h"
#include "lib/str.h"

#define CODE_MAX (1024UL * 1024) /* what a request takes */
#define BODY_MAX (8UL * 1024 * 1024)

struct code_options {
	const char *language, *context;
	struct strv env;
	uint64_t timeout_ms;
};

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_TEXT, code_options, language, "language", 'l', "NAME",
	       "python (the default), javascript or typescript"),
	OPTION(OPTION_TEXT, code_options, context, "context", 'x', "ID",
	       "the context to run in; by default the language's own"),
	OPTION(OPTION_LIST, code_options, env, "env", 'e', "NAME=VALUE", "set for this run"),
	OPTION(OPTION_DURATION, code_options, timeout_ms, "timeout", 't', "TIME",
	       "interrupt it after this: 30s, 5m"),
	OPTION_ROWS_END
};
/* clang-format on */

struct listener {
	struct sse sse;
	bool ended;
	int status; /* ours, once it has ended */
};

static void listener_done(struct listener *l)
{
	sse_done(&l->sse);
}

static int status_of(const struct json *end)
{
	static const struct {
		const char *kind;
		int status;
	} kinds[] = {
		{ "ok", 0 },
		{ "error", 1 },
		{ "timed_out", EXIT_TIMED_OUT },
		{ "killed", EXIT_KILLED },
	};
	const char *kind = json_get_str(end, "kind");
	int64_t code = json_get_int(end, "exit_code"), signum = json_get_int(end, "signal");

	/* The code told its interpreter to exit: with what it said, but never as a success. */
	if (strcmp(kind, "error") == 0 && code > 0)
		return (int)(code & 0xff);
	if (strcmp(kind, "killed") == 0 && signum > 0)
		return EXIT_SIGNAL + (int)(signum & 0x7f);
	for (size_t i = 0; i < array_len(kinds); i++)
		if (strcmp(kind, kinds[i].kind) == 0)
			return kinds[i].status;
	return EXIT_BERTH;
}

static int write_all(int fd, const char *data, size_t len, struct err *e)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "write the code's output");
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int put_output(int fd, const struct json *event, struct err *e)
{
	cleanup(buf_done) struct buf bytes = buf_make(SSE_EVENT_MAX);
	const char *text = json_get_str(event, "data");

	if (text[0])
		return write_all(fd, text, strlen(text), e);
	if (base64_decode(json_get_str(event, "data_base64"), &bytes, e) < 0)
		return -1;
	return write_all(fd, buf_str(&bytes), bytes.len, e);
}

static int put_line(int fd, const char *line, struct err *e)
{
	return write_all(fd, line, strlen(line), e) < 0 ? -1 : write_all(fd, "\n", 1, e);
}

static int put_error(const struct json *error, struct err *e)
{
	cleanup(buf_done) struct buf line = buf_make(SSE_EVENT_MAX);
	const struct json *lines = json_get(error, "traceback");

	for (size_t i = 0; i < json_len(lines); i++)
		if (put_line(STDERR_FILENO, json_text(json_at(lines, i)), e) < 0)
			return -1;
	if (json_len(lines) > 0)
		return 0;
	buf_addf(&line, "%s: %s", json_get_str(error, "name"), json_get_str(error, "message"));
	return put_line(STDERR_FILENO, buf_str(&line), e);
}

static int put_end(struct listener *l, const struct json *end, struct err *e)
{
	const struct json *error = json_get(end, "error");

	l->ended = true;
	l->status = status_of(end);
	if (json_get_bool(end, "restarted"))
		say("the interpreter was started anew: what earlier runs had left is gone");
	/* The code's own error was told when it happened. */
	if (json_get_str(error, "name")[0] && json_len(json_get(error, "traceback")) == 0)
		return put_error(error, e);
	return 0;
}

static int on_event(void *arg, const char *name, const char *data, size_t len, struct err *e)
{
	struct listener *l = arg;
	cleanup(json_free) struct json *event = NULL;

	if (json_parse(data, len, &event, e) < 0)
		return err_wrap(e, "the server's event");
	if (strcmp(name, "stdout") == 0)
		return put_output(STDOUT_FILENO, event, e);
	if (strcmp(name, "stderr") == 0)
		return put_output(STDERR_FILENO, event, e);
	if (strcmp(name, "result") == 0)
		return put_line(STDOUT_FILENO, json_get_str(event, "text"), e);
	if (strcmp(name, "error_output") == 0)
		return put_error(event, e);
	if (strcmp(name, "error") == 0)
		return client_json_error(event, e);
	if (strcmp(name, "end") == 0)
		return put_end(l, event, e);
	return 0; /* `started`, and what a newer server may say */
}

static int on_stream(void *arg, const char *data, size_t len, struct err *e)
{
	struct listener *l = arg;

	return sse_feed(&l->sse, data, len, e);
}

static int read_code(const char *name, struct buf *out, struct err *e)
{
	bool is_stdin = strcmp(name, "-") == 0;
	cleanup(close_fd) int opened = is_stdin ? -1 : open(name, O_RDONLY | O_CLOEXEC);
	int fd = is_stdin ? STDIN_FILENO : opened;
	char chunk[64 * 1024];
	ssize_t n;

	if (fd < 0)
		return err_set(e, ERR_INVALID, "%.200s: %s", name, strerror(errno));
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno != EINTR)
			return err_set(e, ERR_INVALID, "%.200s: %s", name, strerror(errno));
		buf_add(out, chunk, n > 0 ? (size_t)n : 0);
	}
	if (buf_overflowed(out))
		return err_set(e, ERR_TOO_LARGE, "%.200s: more than %lu bytes", name, CODE_MAX);
	if (utf8_valid_prefix(buf_str(out), out->len) != out->len ||
	    strlen(buf_str(out)) != out->len)
		return err_set(e, ERR_INVALID, "%.200s: not UTF-8 text", name);
	return 0;
}

static int make_body(const struct code_options *o, const struct buf *code, struct buf *out,
		     struct err *e)
{
	json_open(out, '{');
	json_str(out, "code", buf_str(code));
	if (o->language)
		json_str(out, "language", o->language);
	if (o->context)
		json_str(out, "context", o->context);
	if (o->timeout_ms)
		json_int(out, "timeout_ms", (int64_t)o->timeout_ms);
	json_key(out, "env");
	json_open(out, '{');
	for (size_t i = 0; i < o->env.len; i++) {
		const char *var = o->env.items[i];
		size_t name = strcspn(var, "=");

		if (!var[name])
			return err_set(e, ERR_INVALID, "-e %.60s: not NAME=VALUE", var);
		if (i > 0)
			buf_adds(out, ",");
		json_add_text(out, var, name);
		buf_adds(out, ":");
		json_add_string(out, var + name + 1);
	}
	buf_adds(out, "}}");
	return 0;
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(listener_done) struct listener l = { 0 };
	cleanup(buf_done) struct buf code = buf_make(CODE_MAX), body = buf_make(BODY_MAX),
				     path = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = {
		.method = "POST",
		.accept = c->json ? NULL : "text/event-stream",
		.content_type = "application/json",
		.body_fd = -1,
		.sink = on_stream,
		.arg = &l,
	};

	sse_init(&l.sse);
	l.sse.on_event = on_event;
	l.sse.arg = &l;
	if (read_code(args->len > 1 ? args->items[1] : "-", &code, e) < 0 ||
	    make_body(given, &code, &body, e) < 0)
		return -1;
	q.body = body.data;
	q.body_len = body.len;
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, args->items[0]);
	buf_adds(&path, "/code");
	if (client_fetch(c, buf_str(&path), &q, &reply, e) < 0)
		return -1;
	if (c->json) {
		if (say_out(buf_str(&reply.text), reply.text.len, e) < 0 || say_out("\n", 1, e) < 0)
			return -1;
		return status_of(reply.tree);
	}
	if (!l.ended)
		return err_set(e, ERR_INTERNAL, "the server closed before the run had ended");
	return l.status;
}

const struct command cmd_code = {
	.name = "code",
	.usage = "SANDBOX [OPTIONS] [FILE]",
	.help = "Run code in a context of a sandbox that keeps its state",
	.details = "Without FILE, or with -, the code is read from standard input. The exit\n"
		   "status is 0, 1 if the code failed, 124 if it took too long, or what it\n"
		   "exited with.",
	.options = options,
	.record_size = sizeof(struct code_options),
	.min = 1,
	.max = 2,
	.run = run,
};

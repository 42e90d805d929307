/* berth shell: a terminal in a sandbox. */
#include "cli/exec-stream.h"

/* What there is: bash as at a login, or else sh. */
#define DEFAULT_SHELL "command -v bash >/dev/null && exec bash -l; exec sh -l"

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_LIST, exec_options, env, "env", 'e', "NAME=VALUE", "set in its environment"),
	OPTION(OPTION_TEXT, exec_options, cwd, "workdir", 'w', "DIR", "where it starts"),
	OPTION_ROWS_END
};
/* clang-format on */

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	static const char *const shell[] = { "/bin/sh", "-c", DEFAULT_SHELL };
	char *const *argv = args->len > 1 ? args->items + 1 : (char *const *)shell;
	size_t argc = args->len > 1 ? args->len - 1 : array_len(shell);
	cleanup(exec_request_done) struct exec_request request = { 0 };
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };
	struct exec_options o = *(const struct exec_options *)given;

	o.tty = true;
	if (exec_stream_request(&o, argv, argc, &request, e) < 0 || interrupt_open(&stop, e) < 0)
		return -1;
	return exec_stream_command(c, args->items[0], &o, &request, &stop, e);
}

const struct command cmd_shell = {
	.name = "shell",
	.usage = "SANDBOX [OPTIONS] [--] [COMMAND...]",
	.help = "Open a terminal in a sandbox",
	.options = options,
	.record_size = sizeof(struct exec_options),
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.own = 1,
	.run = run,
};

/* berth shell: a terminal in a sandbox. */
#include <stdlib.h>
#include <string.h>

#include "cli/pump.h"
#include "cli/terminal.h"
#include "lib/str.h"

/* What there is: bash as at a login, or else sh. */
#define DEFAULT_SHELL "command -v bash >/dev/null && exec bash -l; exec sh -l"

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_LIST, exec_options, env, "env", 'e', "NAME=VALUE", "set in its environment"),
	OPTION(OPTION_TEXT, exec_options, cwd, "workdir", 'w', "DIR", "where it starts"),
	OPTION_ROWS_END
};
/* clang-format on */

static int make_request(const struct exec_options *o, const struct strv *args,
			struct exec_request *ret, struct err *e)
{
	static const char *const shell[] = { "/bin/sh", "-c", DEFAULT_SHELL };
	char *const *argv = args->len > 1 ? args->items + 1 : (char *const *)shell;
	const char *term = getenv("TERM");
	char var[128] = "TERM=xterm-256color";

	if (term && strlen(term) < sizeof(var) - 5)
		memcpy(var + 5, term, strlen(term) + 1);
	strv_add(&ret->env, var);
	if (pump_request(o, argv, args->len > 1 ? args->len - 1 : array_len(shell), ret, e) < 0)
		return -1;
	ret->flags = EXEC_STDIN | EXEC_PTY;
	terminal_size(&ret->size);
	return 0;
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	cleanup(exec_request_done) struct exec_request request = { 0 };
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };
	cleanup(terminal_close) struct terminal tty = { .winch = -1 };

	if (make_request(given, args, &request, e) < 0 || interrupt_open(&stop, e) < 0 ||
	    terminal_open(&tty, e) < 0)
		return -1;
	return pump_terminal(c, args->items[0], &request, &stop, &tty, e);
}

const struct command cmd_shell = {
	.name = "shell",
	.usage = "ID [OPTIONS] [--] [COMMAND...]",
	.help = "Open a terminal in a sandbox",
	.options = options,
	.record_size = sizeof(struct exec_options),
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.own = 1,
	.run = run,
};

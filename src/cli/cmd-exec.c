/* berth exec: one more command in a sandbox that is there. */
#include "cli/pump.h"

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_LIST, exec_options, env, "env", 'e', "NAME=VALUE", "set in its environment"),
	OPTION(OPTION_TEXT, exec_options, cwd, "workdir", 'w', "DIR", "where it starts"),
	OPTION(OPTION_DURATION, exec_options, timeout_ms, "timeout", 't', "TIME",
	       "kill it after this: 30s, 5m"),
	OPTION(OPTION_FLAG, exec_options, interactive, "interactive", 'i', NULL,
	       "forward standard input from a terminal too"),
	OPTION_ROWS_END
};
/* clang-format on */

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	cleanup(exec_request_done) struct exec_request request = { 0 };
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };

	if (pump_request(given, args->items + 1, args->len - 1, &request, e) < 0 ||
	    interrupt_open(&stop, e) < 0)
		return -1;
	return pump_exec(c, args->items[0], &request, &stop, e);
}

const struct command cmd_exec = {
	.name = "exec",
	.usage = "ID [OPTIONS] [--] COMMAND...",
	.help = "Run a command in a sandbox",
	.options = options,
	.record_size = sizeof(struct exec_options),
	.min = 2,
	.max = COMMAND_ARGS_ANY,
	.own = 1,
	.run = run,
};

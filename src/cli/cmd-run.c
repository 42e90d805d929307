/* berth run: a fresh sandbox for one command, gone afterwards whatever happens. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/exit-code.h"
#include "cli/pump.h"
#include "cli/sandbox.h"
#include "cli/say.h"

struct run_options {
	struct exec_options exec;
	struct sandbox_options sandbox;
	bool keep;
};

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_TEXT, run_options, sandbox.runtime, "runtime", 'r', "RUNTIME",
	       "crun (trusted code) or runsc (gVisor)"),
	OPTION(OPTION_TEXT, run_options, sandbox.profile, "profile", 0, "NAME",
	       "where limits that are not given come from; see berth profile ls"),
	OPTION(OPTION_SIZE, run_options, sandbox.memory, "memory", 'm', "SIZE",
	       "memory limit: 512m, 2g"),
	OPTION(OPTION_CPUS, run_options, sandbox.cpu_milli, "cpus", 'c', "N", "CPU limit: 2, 1.5"),
	OPTION(OPTION_NUMBER, run_options, sandbox.pids, "pids", 0, "N", "most processes at once"),
	OPTION(OPTION_SIZE, run_options, sandbox.disk, "disk", 0, "SIZE", "disk limit: 2g"),
	OPTION(OPTION_TEXT, run_options, sandbox.name, "name", 'n', "NAME",
	       "what the sandbox is called; with --keep it is found by it"),
	OPTION(OPTION_LIST, run_options, sandbox.labels, "label", 'l', "NAME=VALUE",
	       "a label of the sandbox"),
	OPTION(OPTION_LIST, run_options, sandbox.allow, "allow", 0, "HOST[:PORT,...]",
	       "let it reach this name; may be repeated, and without it nothing is reached"),
	OPTION(OPTION_LIST, run_options, exec.env, "env", 'e', "NAME=VALUE",
	       "set in its environment"),
	OPTION(OPTION_TEXT, run_options, exec.cwd, "workdir", 'w', "DIR", "where it starts"),
	OPTION(OPTION_DURATION, run_options, exec.timeout_ms, "timeout", 't', "TIME",
	       "kill it after this: 30s, 5m"),
	OPTION(OPTION_FLAG, run_options, exec.interactive, "interactive", 'i', NULL,
	       "forward standard input from a terminal too"),
	OPTION(OPTION_FLAG, run_options, keep, "keep", 'k', NULL, "do not delete the sandbox"),
	OPTION_ROWS_END
};
/* clang-format on */

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct run_options *o = given;
	cleanup(exec_request_done) struct exec_request request = { 0 };
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };
	char id[SANDBOX_ID_SIZE];
	struct err left;
	int status;

	for (size_t i = 0; i < o->sandbox.labels.len; i++)
		if (!strchr(o->sandbox.labels.items[i], '='))
			return err_set(e, ERR_INVALID, "a label is NAME=VALUE, not \"%.60s\"",
				       o->sandbox.labels.items[i]);
	if (pump_request(&o->exec, args->items + 1, args->len - 1, &request, e) < 0 ||
	    interrupt_open(&stop, e) < 0 ||
	    sandbox_create(c, args->items[0], &o->sandbox, &stop, id, e) < 0)
		return -1;
	(void)interrupt_take(&stop);
	if (stop.count)
		status = EXIT_SIGNAL + stop.last; /* while it was made: there is nothing to run */
	else
		status = pump_exec(c, id, &request, &stop, e);
	if (o->keep) {
		say("the sandbox %s is kept", id);
		return status;
	}
	if (sandbox_delete(c, id, &left) == 0)
		return status;
	if (status < 0)
		say_error(e);
	*e = left;
	err_wrap(e, "the sandbox %s was not deleted", id);
	return err_fix(e, "Delete it: berth rm %s", id);
}

const struct command cmd_run = {
	.name = "run",
	.usage = "IMAGE [OPTIONS] [--] COMMAND...",
	.help = "Run a command in a fresh sandbox and delete it afterwards",
	.details = "Standard input is forwarded unless it is a terminal. Ctrl-C goes to the\n"
		   "command; a second one kills it and waits no longer.",
	.options = options,
	.record_size = sizeof(struct run_options),
	.min = 2,
	.max = COMMAND_ARGS_ANY,
	.own = 1,
	.run = run,
};

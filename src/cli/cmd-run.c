/* berth run: a fresh sandbox for one command, gone afterwards whatever happens. */
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/exec-stream.h"
#include "cli/exit-code.h"
#include "cli/keeper.h"
#include "cli/refusals.h"
#include "cli/sandbox.h"
#include "cli/say.h"
#include "lib/errno-map.h"
#include "lib/str.h"

struct run_options {
	struct exec_options exec;
	struct sandbox_options sandbox;
	bool keep;
};

/* clang-format off */
static const struct option_row options[] = {
	SANDBOX_OPTIONS(run_options),
	OPTION(OPTION_LIST, run_options, exec.env, "env", 'e', "NAME=VALUE",
	       "set in its environment"),
	OPTION(OPTION_TEXT, run_options, exec.cwd, "workdir", 'w', "DIR", "where it starts"),
	OPTION(OPTION_DURATION, run_options, exec.timeout_ms, "timeout", 0, "TIME",
	       "kill it after this: 30s, 5m"),
	OPTION(OPTION_FLAG, run_options, exec.interactive, "interactive", 'i', NULL,
	       "forward standard input from a terminal too"),
	OPTION(OPTION_FLAG, run_options, exec.tty, "tty", 't', NULL, "run it on a terminal"),
	OPTION(OPTION_FLAG, run_options, keep, "keep", 'k', NULL, "do not delete the sandbox"),
	OPTION_ROWS_END
};
/* clang-format on */

/* How long the sandbox of a client that was killed stays; BERTH_RUN_LEASE is for tests. */
static int lease_ms(uint64_t *ret, struct err *e)
{
	const char *given = getenv("BERTH_RUN_LEASE");

	*ret = KEEPER_LIFETIME_MS;
	if (given && given[0] && str_duration_ms(given, ret, e) < 0)
		return err_wrap(e, "BERTH_RUN_LEASE");
	return 0;
}

static int end(const struct context *c, const char *id, int status, struct err *e)
{
	struct err left;

	if (sandbox_delete_surely(c, id, &left) == 0)
		return status;
	if (status < 0)
		say_error(e, c->json);
	*e = left;
	err_wrap(e, "the sandbox %s was not deleted", id);
	return err_fix(e, "It will be in %d minutes, or: berth rm %s", KEEPER_LIFETIME_MS / 60000,
		       id);
}

/* It must not be deleted afterwards, as what we made is: the command is not run there. */
static int was_there(const char *name, struct err *e)
{
	err_set(e, ERR_CONFLICT, "there is a sandbox %.60s already", name);
	return err_fix(e, "Run it there: berth exec %.60s -- COMMAND...", name);
}

static int run_in(const struct context *c, const struct run_options *o,
		  struct exec_request *request, struct interrupt *stop, const char *id,
		  struct err *e)
{
	(void)interrupt_take(stop);
	if (stop->count) /* while it was made: there is nothing to run */
		return EXIT_SIGNAL + stop->last;
	return exec_stream_command(c, id, &o->exec, request, stop, e);
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct run_options *o = given;
	struct sandbox_options box = o->sandbox;
	cleanup(exec_request_done) struct exec_request request = { 0 };
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };
	cleanup(client_reply_done) struct client_reply made = { 0 };
	cleanup(keeper_end) struct keeper keeper = { 0 };
	const char *id;
	uint64_t lease;
	int status;

	if (box.lifetime_ms && !o->keep)
		return err_set(e, ERR_INVALID, "--lifetime is for what stays: add --keep");
	if (lease_ms(&lease, e) < 0 ||
	    exec_stream_request(&o->exec, args->items + 1, args->len - 1, &request, e) < 0 ||
	    interrupt_open(&stop, e) < 0)
		return -1;
	if (!o->keep)
		box.lifetime_ms = lease;
	if (sandbox_create(c, args->items[0], &box, &stop, &made, e) < 0)
		return box.name && e->reason && strcmp(e->reason, REASON_OPTIONS_DIFFER) == 0
			       ? was_there(box.name, e)
			       : -1;
	id = json_get_str(made.tree, "id");
	if (made.status == 200)
		return was_there(box.name ? box.name : id, e);
	if (!o->keep && keeper_begin(&keeper, c, id, lease, e) < 0)
		status = -1;
	else
		status = run_in(c, o, &request, &stop, id, e);
	keeper_end(&keeper);
	if (!o->keep)
		status = end(c, id, status, e);
	else if (!c->json) /* the record names it */
		say("the sandbox %s is kept", id);
	if (status > 0 && stop.count == 0 && !c->json)
		refusals_tell(c, id);
	return status;
}

const struct command cmd_run = {
	.name = "run",
	.usage = "IMAGE [OPTIONS] [--] COMMAND...",
	.help = "Run a command in a fresh sandbox and delete it afterwards",
	.details = "Standard input is forwarded unless it is a terminal. Ctrl-C goes to the\n"
		   "command; a second one kills it and waits no longer. Should this client be\n"
		   "killed, the server deletes the sandbox within 5 minutes.",
	.options = options,
	.record_size = sizeof(struct run_options),
	.min = 2,
	.max = COMMAND_ARGS_ANY,
	.own = 1,
	.run = run,
};

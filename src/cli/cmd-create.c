/* berth create: a sandbox that stays, and its id. */
#include <stdio.h>

#include "cli/sandbox.h"
#include "cli/say.h"

struct create_options {
	struct sandbox_options sandbox;
};

/* clang-format off */
static const struct option_row options[] = {
	SANDBOX_OPTIONS(create_options),
	OPTION(OPTION_LIST, create_options, sandbox.env, "env", 'e', "NAME=VALUE",
	       "set in the environment of every command"),
	OPTION_ROWS_END
};
/* clang-format on */

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct create_options *o = given;
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };
	cleanup(client_reply_done) struct client_reply made = { 0 };
	cleanup(buf_done) struct buf line = buf_make(256);

	if (interrupt_open(&stop, e) < 0 ||
	    sandbox_create(c, args->items[0], &o->sandbox, &stop, &made, e) < 0)
		return -1;
	if (made.status == 200)
		say("it was there already");
	if (c->json)
		return client_print(&made, e);
	buf_addf(&line, "%s\n", json_get_str(made.tree, "id"));
	return say_out(buf_str(&line), line.len, e);
}

const struct command cmd_create = {
	.name = "create",
	.usage = "IMAGE [OPTIONS]",
	.help = "Make a sandbox that stays, and print its id",
	.options = options,
	.record_size = sizeof(struct create_options),
	.min = 1,
	.max = 1,
	.run = run,
};

/* berth help, berth version. */
#include <stdio.h>

#include "cli/help.h"
#include "cli/say.h"

static int help(const struct context *c, const void *options, const struct strv *args,
		struct err *e)
{
	const struct command *cmd;
	size_t words;

	(void)options;
	if (c->json)
		return help_json(c->commands, e);
	if (args->len == 0)
		return help_all(c->commands, e);
	cmd = help_find(c->commands, args->len, args->items, &words);
	if (cmd)
		return help_command(cmd, e);
	return help_missing(c->commands, args->len > 1 ? args->items[1] : NULL, args->items[0], e);
}

const struct command cmd_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.help = "Say what berth, or one command, can do",
	.max = 2,
	.run = help,
};

static int version(const struct context *c, const void *options, const struct strv *args,
		   struct err *e)
{
	static const char text[] = "berth " BERTH_VERSION "\n";
	static const char json[] = "{\"version\":\"" BERTH_VERSION "\"}\n";

	(void)options, (void)args;
	return c->json ? say_out(json, sizeof(json) - 1, e) : say_out(text, sizeof(text) - 1, e);
}

const struct command cmd_version = {
	.name = "version",
	.usage = "",
	.help = "Print the version of this program",
	.run = version,
};

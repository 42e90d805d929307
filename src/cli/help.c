#include "cli/help.h"

#include <string.h>

#include "cli/say.h"
#include "lib/json.h"

#define HELP_MAX (64UL * 1024)

const struct command *help_find(const struct command *const *commands, size_t argc, char **argv,
				size_t *words)
{
	for (size_t want = 2; want > 0; want--)
		for (size_t i = 0; argc >= want && commands[i]; i++) {
			const char *name = commands[i]->name, *space = strchr(name, ' ');
			size_t len = space ? (size_t)(space - name) : strlen(name);

			if ((space != NULL) != (want == 2) || strlen(argv[0]) != len ||
			    memcmp(argv[0], name, len) != 0 ||
			    (space && strcmp(argv[1], space + 1) != 0))
				continue;
			*words = want;
			return commands[i];
		}
	return NULL;
}

int help_missing(const struct command *const *commands, const char *second, const char *first,
		 struct err *e)
{
	cleanup(buf_done) struct buf names = buf_make(HELP_MAX);
	size_t len = strlen(first);

	for (size_t i = 0; commands[i]; i++)
		if (strncmp(commands[i]->name, first, len) == 0 && commands[i]->name[len] == ' ')
			buf_addf(&names, "%s%s", names.len ? ", " : "",
				 commands[i]->name + len + 1);
	if (names.len && !second) {
		err_set(e, ERR_INVALID, "%s is not a whole command", first);
		return err_fix(e, "Say one of these after it: %s.", buf_str(&names));
	}
	err_set(e, ERR_INVALID, "there is no command %.60s%s%.60s", first, names.len ? " " : "",
		names.len ? second : "");
	if (names.len)
		return err_fix(e, "After %s there can be: %s.", first, buf_str(&names));
	return err_fix(e, "`berth help` lists the commands.");
}

int help_all(const struct command *const *commands, struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(HELP_MAX);

	buf_adds(&out, "Usage: berth COMMAND [ARGUMENTS]\n\n"
		       "Sandboxes for code you did not write.\n\nCommands:\n");
	for (size_t i = 0; commands[i]; i++)
		buf_addf(&out, "  %-15s %s\n", commands[i]->name, commands[i]->help);
	buf_adds(&out, "\nOptions of every command:\n");
	options_help(&out, command_options);
	buf_adds(&out,
		 "\nExit status:\n"
		 "  of run and exec, the command's own; 128 + N if signal N ended it;\n"
		 "  124 if its time was over; 137 if it ran out of memory;\n"
		 "  127 if there is no such command, 126 if it cannot be run;\n"
		 "  125 if berth itself failed; of check, code and doctor see the manual.\n"
		 "\n`berth help COMMAND` says more.\n");
	return say_out(buf_str(&out), out.len, e);
}

int help_command(const struct command *cmd, struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(HELP_MAX);

	buf_addf(&out, "Usage: berth %s %s\n\n%s.\n", cmd->name, cmd->usage, cmd->help);
	if (cmd->details)
		buf_addf(&out, "\n%s\n", cmd->details);
	buf_adds(&out, "\nOptions:\n");
	options_help(&out, cmd->options);
	options_help(&out, command_options);
	return say_out(buf_str(&out), out.len, e);
}

static void add_options(struct buf *out, const struct option_row *rows)
{
	json_key(out, "options");
	buf_adds(out, "[");
	for (const struct option_row *r = rows; r && r->type != OPTION_END; r++) {
		buf_adds(out, r == rows ? "" : ",");
		json_add_string(out, r->name);
	}
	buf_adds(out, "]");
}

/* For tools/check-docs, which holds the manual and the completion to this. */
int help_json(const struct command *const *commands, struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(HELP_MAX);

	buf_adds(&out, "{");
	add_options(&out, command_options);
	json_key(&out, "commands");
	buf_adds(&out, "[");
	for (size_t i = 0; commands[i]; i++) {
		json_open(&out, '{');
		json_str(&out, "name", commands[i]->name);
		json_str(&out, "help", commands[i]->help);
		add_options(&out, commands[i]->options);
		buf_adds(&out, "}");
	}
	buf_adds(&out, "]}\n");
	return say_out(buf_str(&out), out.len, e);
}

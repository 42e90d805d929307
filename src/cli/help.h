/* The help, written from the tables that do the parsing. */
#pragma once

#include "cli/command.h"

/* The command these words begin with, the longest name first; `words` is how many it takes. */
const struct command *help_find(const struct command *const *commands, size_t argc, char **argv,
				size_t *words);

/* There is no such command; `second` may be NULL. Names what could have followed. Always -1. */
int help_missing(const struct command *const *commands, const char *second, const char *first,
		 struct err *e);

must_check int help_all(const struct command *const *commands, struct err *e);
must_check int help_command(const struct command *cmd, struct err *e);
must_check int help_json(const struct command *const *commands, struct err *e);

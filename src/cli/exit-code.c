#include "cli/exit-code.h"

#include <stdio.h>
#include <string.h>

#include "cli/say.h"
#include "lib/errno-map.h"

#define LOST \
	"the end of the command was not seen: its sandbox was deleted or ended, or its watcher was"

/* clang-format off */
static const struct {
	int code;		/* 0: from the record */
	const char *reason;
} kinds[EXEC_KIND_COUNT] = {
	[EXEC_NONE]	= { EXIT_BERTH,		"the server did not say how the command ended" },
	[EXEC_TIMED_OUT] = { EXIT_TIMED_OUT,	"the command ran out of time and was killed" },
	[EXEC_OOM]	= { EXIT_KILLED,	"the command ran out of memory and was killed" },
	[EXEC_KILLED]	= { EXIT_KILLED,	"the command was killed on request" },
	[EXEC_LOST]	= { EXIT_BERTH,		LOST },
};
/* clang-format on */

int exit_code(const struct exec_exit *x)
{
	if (x->kind >= EXEC_KIND_COUNT)
		return EXIT_BERTH;
	if (x->kind == EXEC_EXITED)
		return (int)(x->code & 0xff);
	/* Ctrl-C is a signal we asked for: 130, as every shell has it. */
	if (x->kind == EXEC_SIGNALLED || (x->kind == EXEC_KILLED && x->signum))
		return EXIT_SIGNAL + (int)(x->signum & 0x7f);
	return kinds[x->kind].code;
}

bool exit_reason(const struct exec_exit *x, char out[EXIT_REASON_SIZE])
{
	const char *text = kinds[x->kind < EXEC_KIND_COUNT ? x->kind : EXEC_NONE].reason;
	const char *name = sigabbrev_np((int)x->signum);

	if (x->kind == EXEC_SIGNALLED && name)
		snprintf(out, EXIT_REASON_SIZE, "the command was ended by signal %u (%s)",
			 (unsigned)x->signum, name);
	else if (x->kind == EXEC_SIGNALLED)
		snprintf(out, EXIT_REASON_SIZE, "the command was ended by signal %u",
			 (unsigned)x->signum);
	else if (text)
		snprintf(out, EXIT_REASON_SIZE, "%s", text);
	return text || x->kind == EXEC_SIGNALLED;
}

int exit_refused(const struct err *why, bool json)
{
	const char *reason = why->reason ? why->reason : "";
	int code = strcmp(reason, REASON_NO_COMMAND) == 0   ? EXIT_NO_COMMAND
		   : strcmp(reason, REASON_CANNOT_RUN) == 0 ? EXIT_CANNOT_RUN
							    : -1;

	if (code > 0)
		say_error(why, json);
	return code;
}

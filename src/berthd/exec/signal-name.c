#include "berthd/exec/signal-name.h"

#include <signal.h>
#include <string.h>

#include "lib/str.h"
#include "proto/exec.h"

/* clang-format off */
static const struct {
	const char *name;
	uint32_t number;
} signals[] = {
	{ "HUP", SIGHUP },	{ "INT", SIGINT },	{ "QUIT", SIGQUIT },	{ "ILL", SIGILL },
	{ "TRAP", SIGTRAP },	{ "ABRT", SIGABRT },	{ "BUS", SIGBUS },	{ "FPE", SIGFPE },
	{ "KILL", SIGKILL },	{ "USR1", SIGUSR1 },	{ "SEGV", SIGSEGV },	{ "USR2", SIGUSR2 },
	{ "PIPE", SIGPIPE },	{ "ALRM", SIGALRM },	{ "TERM", SIGTERM },	{ "CHLD", SIGCHLD },
	{ "CONT", SIGCONT },	{ "STOP", SIGSTOP },	{ "TSTP", SIGTSTP },	{ "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU },	{ "URG", SIGURG },	{ "XCPU", SIGXCPU },	{ "XFSZ", SIGXFSZ },
	{ "VTALRM", SIGVTALRM }, { "PROF", SIGPROF },	{ "WINCH", SIGWINCH },	{ "IO", SIGIO },
	{ "SYS", SIGSYS },
};
/* clang-format on */

int signal_by_name(const char *name, uint32_t *ret, struct err *e)
{
	const char *plain = str_starts(name, "SIG") ? name + 3 : name;
	struct err ignored;
	uint64_t number;

	for (size_t i = 0; i < array_len(signals); i++)
		if (strcmp(signals[i].name, plain) == 0) {
			*ret = signals[i].number;
			return 0;
		}
	if (str_u64(name, &number, &ignored) == 0 && number > 0 && number <= EXEC_SIGNUM_MAX) {
		*ret = (uint32_t)number;
		return 0;
	}
	return err_set(e, ERR_INVALID, "there is no signal \"%.40s\"", name);
}

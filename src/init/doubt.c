#include "init/doubt.h"

#include <signal.h>
#include <sys/wait.h>

#define KEEP_US 5000000 /* for the host to find out */

static bool is_in(const struct doubt *d)
{
	return d->state == DOUBT_UNSAID || d->state == DOUBT_SAID;
}

static bool was_killed(pid_t pid)
{
	siginfo_t end = { 0 };

	return pid > 0 && waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       end.si_pid == pid && end.si_code == CLD_KILLED && end.si_status == SIGKILL;
}

bool doubt_look(struct doubt *d, pid_t pid, uint64_t now_us)
{
	if (d->state == DOUBT_NONE && was_killed(pid))
		*d = (struct doubt){ DOUBT_UNSAID, now_us, now_us + KEEP_US };
	return is_in(d);
}

bool doubt_end(struct doubt *d)
{
	bool was = is_in(d);

	if (was)
		d->state = DOUBT_OVER;
	d->until_us = 0;
	return was;
}

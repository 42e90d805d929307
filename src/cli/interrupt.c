#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int interrupt_open(struct interrupt *i, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	i->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (i->fd < 0)
		return err_sys(e, errno, "signalfd");
	sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, errno, "block signals");
	return 0;
}

void interrupt_close(struct interrupt *i)
{
	close_fd(&i->fd);
}

bool interrupt_take(struct interrupt *i)
{
	struct signalfd_siginfo info;
	bool fresh = false;

	while (read(i->fd, &info, sizeof(info)) == sizeof(info)) {
		i->count++;
		i->last = (int)info.ssi_signo;
		fresh = true;
	}
	return fresh;
}

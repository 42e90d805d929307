#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/dev.h"
#include "cli/say.h"
#include "lib/file.h"
#include "lib/time.h"

#define READY_POLL_MS     50
#define START_DEATHS_MAX  3 /* during a start; later a daemon is restarted for ever */
#define HELPER_TIMEOUT_MS 120000
#define LOG_TAIL          1500

int dev_signals(struct dev *dev, struct err *e)
{
	static const int taken[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < array_len(taken); i++)
		sigaddset(&set, taken[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, errno, "block signals");
	sigdelset(&set, SIGPIPE); /* only kept away: EPIPE says it better */
	dev->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (dev->sigfd < 0)
		return err_sys(e, errno, "signalfd");
	/* What a daemon leaves behind becomes our child, so its end is seen. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(e, errno, "become a subreaper");
	return 0;
}

static struct daemon *daemon_by_pid(struct dev *dev, pid_t pid)
{
	for (size_t i = 0; i < DEV_DAEMONS; i++)
		if (dev->daemons[i].proc.pid == pid)
			return &dev->daemons[i];
	return NULL;
}

/* A helper has a waiter of its own; everything else that has ended is ours to reap. */
static void reap(struct dev *dev)
{
	for (;;) {
		siginfo_t info = { 0 };
		struct daemon *d;
		int status;

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			return;
		d = daemon_by_pid(dev, info.si_pid);
		if (!d)
			(void)waitpid(info.si_pid, NULL, 0); /* an orphan */
		else if (proc_ended(&d->proc, &status))
			daemon_ended(d, status, time_mono_ms());
	}
}

static void take_signals(struct dev *dev)
{
	struct signalfd_siginfo info;

	while (read(dev->sigfd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			dev->stops++;
}

void dev_turn(struct dev *dev, unsigned timeout_ms)
{
	struct pollfd p = { .fd = dev->sigfd, .events = POLLIN };
	uint64_t now = time_mono_ms();
	struct err e;

	for (size_t i = 0; i < DEV_DAEMONS; i++) {
		const struct daemon *d = &dev->daemons[i];

		if (d->wanted && !daemon_runs(d) && d->again_ms < now + timeout_ms)
			timeout_ms = d->again_ms > now ? (unsigned)(d->again_ms - now) : 0;
	}
	(void)poll(&p, 1, (int)timeout_ms); /* whatever it says, we look */
	take_signals(dev);
	reap(dev);
	now = time_mono_ms();
	for (size_t i = 0; i < DEV_DAEMONS; i++) {
		struct daemon *d = &dev->daemons[i];

		if (!d->wanted || daemon_runs(d) || d->again_ms > now)
			continue;
		if (daemon_start(d, &dev->home, &e) < 0) {
			say("%s does not start: %s", d->name, e.msg);
			d->again_ms = now + 1000;
		}
	}
}

/* The last lines of its log, indented: the answer is nearly always there. */
static void show_log(struct dev *dev, const char *name)
{
	char file[64], tail[LOG_TAIL + 1], *line = tail;
	cleanup(close_fd) int fd = -1;
	ssize_t n;
	off_t end;

	snprintf(file, sizeof(file), "%s.log", name);
	fd = openat(dev->logfd, file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	end = lseek(fd, 0, SEEK_END);
	n = pread(fd, tail, LOG_TAIL, end > LOG_TAIL ? end - LOG_TAIL : 0);
	if (n <= 0)
		return;
	tail[n] = '\0';
	if (end > LOG_TAIL && strchr(tail, '\n'))
		line = strchr(tail, '\n') + 1;
	say("the end of %s/log/%s:\n%s", dev->dir, file, line);
}

int dev_start(struct dev *dev, enum dev_daemon which, bool (*ready)(struct dev *dev),
	      unsigned timeout_ms, struct err *e)
{
	struct daemon *d = &dev->daemons[which];
	uint64_t deadline = time_mono_ms() + timeout_ms;

	if (daemon_start(d, &dev->home, e) < 0)
		return -1;
	d->wanted = true;
	while (!ready(dev)) {
		dev_turn(dev, READY_POLL_MS);
		if (dev->stops)
			return err_set(e, ERR_TIMEOUT, "interrupted");
		if (d->fast_deaths >= START_DEATHS_MAX || time_mono_ms() > deadline) {
			show_log(dev, d->name);
			err_set(e, ERR_INTERNAL, "%s %s", d->name,
				d->fast_deaths ? "dies when it is started" : "does not get ready");
			return err_fix(e, "See %s/log/%s.log; `berth doctor` checks this machine.",
				       dev->dir, d->name);
		}
	}
	d->fast_deaths = 0;
	return 0;
}

static int become(void *arg)
{
	const struct dev *dev = arg;

	return setsid() < 0 ? -1 : account_become(&dev->account);
}

/* What it prints, until it ends or the time is over. Its end is left for the caller to see. */
static bool read_helper(struct dev *dev, int fd, struct buf *out)
{
	uint64_t deadline = time_mono_ms() + HELPER_TIMEOUT_MS;
	char chunk[4096];

	while (time_mono_ms() < deadline && !dev->stops) {
		struct pollfd p[] = { { .fd = fd, .events = POLLIN },
				      { .fd = dev->sigfd, .events = POLLIN } };
		ssize_t n;

		(void)poll(p, 2, 1000);
		take_signals(dev);
		if (!(p[0].revents))
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			return true;
		buf_add(out, chunk, (size_t)n);
	}
	return false;
}

int dev_run_helper(struct dev *dev, const char *const *argv, const char *log, struct buf *out,
		   struct err *e)
{
	cleanup(strv_done) struct strv env = daemon_environment();
	cleanup(close_fd) int logfile = -1, in = -1, to = -1;
	struct proc_spec spec = { .argv = argv, .in = -1, .cwd = "/", .prepare = become };
	struct proc p;
	int ends[2], status;
	char how[64];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	in = ends[0];
	to = ends[1];
	logfile = openat(dev->logfd, log,
			 O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	spec.arg = dev;
	spec.env = (const char *const *)env.items;
	spec.out = to;
	spec.err = logfile;
	if (proc_start(&spec, &p, e) < 0)
		return -1;
	close_fd(&to);
	to = -1;
	if (!read_helper(dev, in, out))
		proc_kill(&p, SIGKILL);
	status = proc_wait(&p);
	if (status == 0)
		return 0;
	proc_status_text(status, how, sizeof(how));
	err_set(e, ERR_INTERNAL, "%s %s", argv[0], how);
	return err_fix(e, "See %s/log/%s.", dev->dir, log);
}

#include "node/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"

struct helper {
	pid_t pid;
};

static void helper_done(struct helper *h)
{
	if (h->pid <= 0)
		return;
	kill(h->pid, SIGKILL);
	waitpid(h->pid, NULL, 0);
}

/*
 * A namespace belongs to its maker's effective id, and its limits are the maker's. The rights
 * stay: some hosts let only CAP_SYS_ADMIN make one.
 */
static int become(uint32_t owner)
{
	static const struct rlimit signals = { USERNS_SIGNALS, USERNS_SIGNALS };
	static const struct rlimit queues = { USERNS_QUEUE_BYTES, USERNS_QUEUE_BYTES };

	if (setrlimit(RLIMIT_SIGPENDING, &signals) < 0 || setrlimit(RLIMIT_MSGQUEUE, &queues) < 0)
		return -1;
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
		return -1;
	return setresgid(owner, owner, owner) < 0 ? -1 : setresuid(owner, owner, owner);
}

/* A process in a user namespace of its own, stopped, for as long as we need its namespace. */
static int helper_start(struct helper *h, uint32_t owner, struct err *e)
{
	pid_t parent = getpid();
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	h->pid = fork();
	if (h->pid == 0) {
		/* We may be killed while it waits: it must not wait for ever, with all we hold. */
		if (become(owner) == 0 && unshare(CLONE_NEWUSER) == 0 &&
		    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent)
			(void)!write(ready[1], "+", 1);
		else
			_exit(1);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (h->pid < 0 || read(ready[0], &byte, 1) != 1) {
		close(ready[0]);
		return err_set(e, ERR_UNSUPPORTED, "cannot make a user namespace");
	}
	close(ready[0]);
	return 0;
}

static int map_ids(const struct helper *h, uint32_t first, struct err *e)
{
	static const char *const files[] = { "uid_map", "gid_map" };
	char path[64], line[64];

	snprintf(line, sizeof(line), "0 %u %d", first, USERNS_RANGE);
	for (size_t i = 0; i < array_len(files); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", h->pid, files[i]);
		if (file_poke(AT_FDCWD, path, line, e) < 0)
			return -1;
	}
	return 0;
}

int userns_make(uint32_t first, int *ret, struct err *e)
{
	cleanup(helper_done) struct helper h = { 0 };
	char path[64];
	int fd;

	if (helper_start(&h, first, e) < 0 || map_ids(&h, first, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", h.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open %s", path);
	*ret = fd;
	return 0;
}

/* This thread's effective id alone: libc's function would change every thread's. */
static int set_effective(uint32_t id)
{
	return (int)syscall(SYS_setresuid, -1, id, -1);
}

int userns_prlimit(uint32_t first, pid_t pid, int resource, struct rlimit limit)
{
	int r = prlimit(pid, resource, &limit, NULL), why;

	if (r == 0 || errno != EPERM || set_effective(first) < 0)
		return r;
	r = prlimit(pid, resource, &limit, NULL);
	why = errno;
	if (set_effective(0) < 0)
		abort(); /* it is allowed: the real id is still 0 */
	errno = why;
	return r;
}

/* Pid 1 of the box, which is Berth's: taking it over is not easy, and gains nothing outside. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probe/probe.h"

#define INIT "/.berth/init"
#define BOX  "the box is its own: it has gVisor around it"

static long try_ptrace(struct attempt *a)
{
	(void)a;
	return ptrace(PTRACE_SEIZE, 1, 0, 0); /* which does not stop it */
}

static long try_read_memory(struct attempt *a)
{
	static char into[8];
	struct iovec local = { into, sizeof(into) }, remote = { (void *)0x400000, sizeof(into) };

	(void)a;
	return syscall(SYS_process_vm_readv, 1, &local, 1L, &remote, 1L, 0L);
}

static long try_open_memory(struct attempt *a)
{
	(void)a;
	return open("/proc/1/mem", O_RDWR | O_CLOEXEC);
}

static long try_descriptors(struct attempt *a)
{
	for (int i = 0; i < 64; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/1/fd/%d", i);
		if (open(path, O_RDWR | O_NONBLOCK | O_APPEND | O_CLOEXEC) >= 0)
			return probe_say(a, 0, "%s can be opened", path);
	}
	return -1;
}

static long try_take_descriptor(struct attempt *a)
{
	long fd = syscall(434, 1, 0);

	(void)a;
	return fd < 0 ? fd : syscall(438, fd, 3, 0);
}

static long try_environment(struct attempt *a)
{
	int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
	char some[16];

	(void)a;
	return fd < 0 || read(fd, some, sizeof(some)) <= 0 ? -1 : 0;
}

static long try_executable(struct attempt *a)
{
	(void)a;
	return open("/proc/1/exe", O_RDWR | O_CLOEXEC);
}

static long try_overwrite(struct attempt *a)
{
	(void)a;
	return open(INIT, O_RDWR | O_CLOEXEC);
}

static long try_replace(struct attempt *a)
{
	if (unlink(INIT) == 0 || rename(INIT, "/.berth/other") == 0)
		return 0;
	return chmod(INIT, 0777) == 0 ? probe_say(a, 0, "its mode was changed") : -1;
}

static long try_root_link(struct attempt *a)
{
	char path[300];

	if (!a->target->file[0])
		return probe_refused(ENOENT);
	snprintf(path, sizeof(path), "/proc/1/root/../../..%s", a->target->file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static long try_oom(struct attempt *a)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	(void)a;
	return fd < 0 || write(fd, "-1000", 5) != 5 ? -1 : 0;
}

/* clang-format off */
const struct probe probe_init[] = {
	{ "init-ptrace", "taking over pid 1", "ptrace() it", try_ptrace, JUDGE_ANY, BOX },
	{ "init-memory-read", "taking over pid 1", "process_vm_readv()", try_read_memory, JUDGE_ANY,
	  BOX },
	{ "init-memory", "taking over pid 1", "open /proc/1/mem", try_open_memory, JUDGE_ANY, BOX },
	{ "init-descriptors", "what pid 1 has open", "open /proc/1/fd/*", try_descriptors,
	  JUDGE_ANY, "what it has open is its socket and pipes of gVisor's" },
	{ "init-take-descriptor", "what pid 1 has open", "pidfd_getfd()", try_take_descriptor,
	  JUDGE_ANY, BOX },
	{ "init-environment", "secrets of the host", "read /proc/1/environ", try_environment,
	  JUDGE_ANY, "it holds what the sandbox was made with" },
	{ "init-executable", "CVE-2019-5736", "open /proc/1/exe to write", try_executable },
	{ "init-overwrite", "a file that all boxes share", "open " INIT " to write",
	  try_overwrite },
	{ "init-replace", "a file that all boxes share", "unlink or rename " INIT, try_replace },
	{ "init-root", "CVE-2024-21626", "out by /proc/1/root", try_root_link },
	{ "oom-score", "another is killed instead", "write -1000 to oom_score_adj", try_oom,
	  JUDGE_ANY, "the number is gVisor's own kernel's" },
	{ NULL },
};
/* clang-format on */

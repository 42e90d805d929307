/*
 * What the kernel counts for a user or for the whole host. `hold NAME` takes all of it that a box
 * gets and keeps it for a while; `one NAME`, in a neighbour and on the host, must still get one.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probe/helper.h"
#include "probe/probe.h"

#define MOST         20000
#define WATCHES_MOST 250000  /* more than user.max_inotify_watches is by default */
#define EVENTS_MOST  1000000 /* the box's memory ends it on a large host */
#define FILES_MOST   400000  /* of many processes; fs.file-max of a large host stays far away */
#define WATCHED      4000    /* files; each counts once for an instance */
#define POLLED       4000    /* descriptors, likewise */
#define KEPT         64      /* descriptors below, of the probe itself */
#define HOLD_SECONDS 60
#define PIPE_BYTES   (1 << 20)
#define LOCKED_BYTES (1 << 20)

static int take_inotify(void)
{
	return inotify_init1(IN_CLOEXEC);
}

static int take_signal(void)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	return sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 1 });
}

static int take_timer(void)
{
	struct sigevent never = { .sigev_notify = SIGEV_NONE };
	timer_t t;

	return timer_create(CLOCK_MONOTONIC, &never, &t);
}

static int take_queue(void)
{
	static int count;
	char name[64];
	mqd_t q;

	snprintf(name, sizeof(name), "/berth-probe-%d-%d", (int)getpid(), count++);
	q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	if (q >= 0)
		(void)mq_unlink(name); /* it lives on for as long as we have it */
	return (int)q;
}

static int take_locked(void)
{
	int id = shmget(IPC_PRIVATE, LOCKED_BYTES, IPC_CREAT | 0600);
	int r = id < 0 || shmat(id, NULL, 0) == (void *)-1 ? -1 : shmctl(id, SHM_LOCK, NULL);
	int why = errno;

	if (id >= 0)
		(void)shmctl(id, IPC_RMID, NULL);
	errno = why;
	return r;
}

static int take_pipe(void)
{
	int ends[2];

	return pipe2(ends, O_CLOEXEC) < 0 ? -1 : fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
}

/* A file of its own for each watch of an instance; the first, "/", is for a caller of one. */
static int take_watch(void)
{
	static int instance, count;
	int at = count++ % WATCHED, fd;
	char path[64] = "/";

	if (at == 0)
		instance = inotify_init1(IN_CLOEXEC);
	if (at > 0) {
		snprintf(path, sizeof(path), "/tmp/berth-probe-watched-%d", at);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return -1;
		close(fd);
	}
	return inotify_add_watch(instance, path, IN_ATTRIB);
}

/* A descriptor counts once in each epoll that has it. */
static int take_event(void)
{
	static int polled[POLLED], epoll, count;
	struct epoll_event none = { .events = 0 };
	int at = count % POLLED;

	if (at == 0)
		epoll = epoll_create1(EPOLL_CLOEXEC);
	if (count < POLLED)
		polled[at] = eventfd(0, EFD_CLOEXEC);
	count++;
	return epoll_ctl(epoll, EPOLL_CTL_ADD, polled[at], &none);
}

/* One that only waits, until we are gone. */
static int fork_one(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	for (;;)
		pause();
}

/* When a process may have no more of them, another keeps those, and we begin again. */
static int take_file(void)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 || errno != EMFILE)
		return fd;
	if (fork_one() < 0)
		return -1;
	for (long i = sysconf(_SC_OPEN_MAX) - 1; i >= KEPT; i--)
		(void)close((int)i);
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int take_key(void)
{
	static int count;
	char name[32];

	snprintf(name, sizeof(name), "berth-probe-%d", count++);
	/* Of this process: it goes with us. */
	return (int)syscall(SYS_add_key, "user", name, "x", 1UL, -2L /* the process's keyring */);
}

static int take_mark_group(void)
{
	return (int)syscall(SYS_fanotify_init, 0x201 /* CLOEXEC, REPORT_FID */, O_RDONLY);
}

/* It has no name any more, but counts for as long as we have it. */
static int take_segment(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	int r = id < 0 || shmat(id, NULL, 0) == (void *)-1 ? -1 : 0;
	int why = errno;

	if (id >= 0)
		(void)shmctl(id, IPC_RMID, NULL);
	errno = why;
	return r;
}

static int send_descriptor(int to)
{
	struct iovec byte = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = { 0 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &to, sizeof(to));
	return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* A descriptor that was sent and not taken yet. */
static int take_flight(void)
{
	static int ends[2] = { -1, -1 };

	if (ends[0] >= 0 && send_descriptor(ends[0]) == 0)
		return 0;
	if (ends[0] >= 0 && errno != EAGAIN)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	return send_descriptor(ends[0]);
}

static int take_terminal(void)
{
	return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* clang-format off */
#define SHARED_UP_TO(most, name, what, take_one) \
	{ name, "one box takes what others need: " what, "take all there are, beside a neighbour", \
	  .take = (take_one), .args = { most } }
#define SHARED(name, what, take_one) SHARED_UP_TO(MOST, name, what, take_one)

const struct probe probe_shared[] = {
	SHARED("shared-inotify", "user.max_inotify_instances", take_inotify),
	SHARED("shared-signals", "RLIMIT_SIGPENDING", take_signal),
	SHARED("shared-timers", "RLIMIT_SIGPENDING", take_timer),
	SHARED("shared-queues", "RLIMIT_MSGQUEUE", take_queue),
	SHARED("shared-locked-memory", "RLIMIT_MEMLOCK", take_locked),
	SHARED("shared-pipes", "fs.pipe-user-pages-soft", take_pipe),
	SHARED("shared-terminals", "kernel.pty.max", take_terminal),
	SHARED_UP_TO(WATCHES_MOST, "shared-watches", "user.max_inotify_watches", take_watch),
	SHARED_UP_TO(EVENTS_MOST, "shared-events", "fs.epoll.max_user_watches", take_event),
	SHARED("shared-processes", "RLIMIT_NPROC, kernel.pid_max", fork_one),
	SHARED_UP_TO(FILES_MOST, "shared-files", "fs.file-max", take_file),
	SHARED("shared-keys", "kernel.keys.maxkeys", take_key),
	SHARED("shared-marks", "user.max_fanotify_groups", take_mark_group),
	SHARED("shared-segments", "kernel.shmmni", take_segment),
	SHARED("shared-descriptors", "descriptors sent and not taken", take_flight),
	{ NULL },
};
/* clang-format on */

static const struct probe *find(const char *name)
{
	for (const struct probe *p = probe_shared; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

int shared_one(const char *name)
{
	const struct probe *p = find(name);

	if (!p)
		return 2;
	puts(p->take() >= 0 ? "ok" : strerror(errno));
	return 0;
}

static no_return void keep(const struct probe *p, int to)
{
	char text[128];
	long count = 0;

	alarm(HOLD_SECONDS);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	while (count < p->args[0] && p->take() >= 0)
		count++;
	snprintf(text, sizeof(text), "%d %ld %s", (int)getpid(), count, strerror(errno));
	(void)!write(to, text, strlen(text));
	close(to);
	for (;;)
		pause();
}

int shared_hold(const char *name)
{
	const struct probe *p = find(name);
	char text[128] = "";
	int ends[2];

	if (!p || pipe2(ends, O_CLOEXEC) < 0)
		return 2;
	if (fork() == 0) {
		close(ends[0]);
		keep(p, ends[1]);
	}
	close(ends[1]);
	(void)!read(ends[0], text, sizeof(text) - 1);
	puts(text);
	return text[0] == '\0';
}

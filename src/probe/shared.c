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
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "probe/helper.h"
#include "probe/probe.h"

#define MOST         20000
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

static int take_terminal(void)
{
	return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* clang-format off */
#define SHARED(name, what, take_one) \
	{ name, "one box takes what others need: " what, "take all there are, beside a neighbour", \
	  .take = (take_one) }

const struct probe probe_shared[] = {
	SHARED("shared-inotify", "user.max_inotify_instances", take_inotify),
	SHARED("shared-signals", "RLIMIT_SIGPENDING", take_signal),
	SHARED("shared-timers", "RLIMIT_SIGPENDING", take_timer),
	SHARED("shared-queues", "RLIMIT_MSGQUEUE", take_queue),
	SHARED("shared-locked-memory", "RLIMIT_MEMLOCK", take_locked),
	SHARED("shared-pipes", "fs.pipe-user-pages-soft", take_pipe),
	SHARED("shared-terminals", "kernel.pty.max", take_terminal),
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
	while (count < MOST && p->take() >= 0)
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

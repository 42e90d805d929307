#include "node/freeze-watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/proc.h"
#include "lib/time.h"
#include "node/freeze.h"

#define LOOK_MS    100
#define DISMISS_MS 2000
#define TREE_FD    3
#define PRIORITY   (-10)

int freeze_watchdog_open(struct freeze_watchdog *g, int run_fd, struct err *e)
{
	void *at;

	g->fd = openat(run_fd, "guard", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (g->fd < 0 || ftruncate(g->fd, sizeof(*g->until_ms)) < 0)
		return err_sys(e, errno, "open guard");
	at = mmap(NULL, sizeof(*g->until_ms), PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
	if (at == MAP_FAILED)
		return err_sys(e, errno, "map guard");
	g->until_ms = at;
	g->home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return g->home < 0 ? err_sys(e, errno, "open the mount namespace") : 0;
}

static void sleep_ms(uint64_t ms)
{
	(void)poll(NULL, 0, (int)ms); /* there is nothing to wait for but time */
}

/*
 * Frozen just when berth-node was told of more time: let them go again. The guard or
 * berth-node, whichever comes last, has looked last.
 */
static void watch(const struct cgroup_host *h, const _Atomic uint64_t *until_ms)
{
	uint64_t until, now;
	struct err ignored;

	while ((until = atomic_load(until_ms)) != 0) {
		now = time_boot_ms();
		if (now < until) {
			sleep_ms(until - now < LOOK_MS ? until - now : LOOK_MS);
			continue;
		}
		(void)!freeze_all(h, &ignored); /* tried again in a moment */
		until = atomic_load(until_ms);
		if (until > time_boot_ms())
			(void)!thaw_all(h, &ignored);
		else
			sleep_ms(LOOK_MS);
	}
}

/* In a process of its own, which berth-node does not wait for. It ends when it is dismissed. */
static void no_return live(const struct freeze_watchdog *g, const struct cgroup_host *h,
			   size_t tree)
{
	struct cgroup_host alone = { .mode = h->mode, .tree_count = 1, .trees = { TREE_FD } };
	char path[32];
	struct err ignored;
	int keep[] = { h->trees[tree], -1 }; /* as TREE_FD, and a lock */

	memcpy(alone.parent, h->parent, sizeof(alone.parent));
	memcpy(alone.names[0], h->names[tree], sizeof(alone.names[0]));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", g->fd);
	keep[1] = open(path, O_RDWR | O_CLOEXEC); /* a lock of its own, not berth-node's */
	if (keep[1] < 0 || flock(keep[1], LOCK_EX | LOCK_NB) < 0 ||
	    setns(g->home, CLONE_NEWNS) < 0 || !proc_keep_only(keep, array_len(keep)))
		_exit(1);
	(void)setsid();
	(void)!chdir("/");
	(void)prctl(PR_SET_NAME, "berth-guard");
	(void)setpriority(PRIO_PROCESS, 0, PRIORITY);
	(void)!file_poke(AT_FDCWD, "/proc/self/oom_score_adj", "-1000", &ignored);
	watch(&alone, g->until_ms);
	_exit(0);
}

static bool is_there(const struct freeze_watchdog *g)
{
	if (flock(g->fd, LOCK_EX | LOCK_NB) < 0)
		return true;
	(void)flock(g->fd, LOCK_UN);
	return false;
}

/* Forked twice: it is not our child, and we need not reap it. */
static int start(const struct freeze_watchdog *g, const struct cgroup_host *h, struct err *e)
{
	size_t tree;
	pid_t pid;

	if (!freeze_tree(h, &tree))
		return err_set(e, ERR_UNSUPPORTED, "nothing here can freeze");
	pid = fork();
	if (pid < 0)
		return err_sys(e, errno, "start the guard");
	if (pid == 0) {
		if (fork() == 0)
			live(g, h, tree);
		_exit(0);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int freeze_watchdog_set(struct freeze_watchdog *g, const struct cgroup_host *h, uint64_t until_ms,
			struct err *e)
{
	atomic_store(g->until_ms, until_ms);
	return is_there(g) ? 0 : start(g, h, e);
}

void freeze_watchdog_dismiss(struct freeze_watchdog *g)
{
	uint64_t end = time_boot_ms() + DISMISS_MS;

	if (!g->until_ms)
		return;
	atomic_store(g->until_ms, 0);
	while (is_there(g) && time_boot_ms() < end)
		sleep_ms(1);
}

void freeze_watchdog_close(struct freeze_watchdog *g)
{
	if (g->until_ms)
		(void)munmap(g->until_ms, sizeof(*g->until_ms));
	close_fd(&g->fd);
	close_fd(&g->home);
}

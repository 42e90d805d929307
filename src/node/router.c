#include "node/router.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/proc.h"
#include "node/nft-allowlist.h"
#include "node/veth.h"

#define LOCK_FD      3 /* in berth-router; the sockets come after it, by their kind */
#define BEGIN_MS     5000
#define END_MS       5000
#define TURN_MS      1
#define TCP_PORT     1 /* as the packet rules say */
#define UDP_PORT     53
#define LISTEN_QUEUE 4096

/* ---- berth-router itself ---- */

static int make_socket(enum router_socket_kind kind)
{
	int type = (kind == ROUTER_TCP ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
	cleanup(close_fd) int fd = socket(AF_INET, type, 0); /* CLOEXEC */
	struct sockaddr_in at = { .sin_family = AF_INET };
	static const int on = 1;

	at.sin_port = htons(kind == ROUTER_TCP ? TCP_PORT : UDP_PORT);
	if (fd < 0 || setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_IP, IP_RECVORIGDSTADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    (kind == ROUTER_TCP && listen(fd, LISTEN_QUEUE) < 0))
		return -1;
	return take_fd(fd);
}

static bool lock_is_mine(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_SETLK, &whole) == 0;
}

/* The namespace and its sockets: those that are there, or new ones. */
static bool enter(const struct router *r, int sockets[ROUTER_SOCKET_COUNT])
{
	if (r->netns < 0 ? unshare(CLONE_NEWNET) < 0 : setns(r->netns, CLONE_NEWNET) < 0)
		return false;
	for (int kind = ROUTER_NONE + 1; kind < ROUTER_SOCKET_COUNT; kind++)
		sockets[kind] = r->netns < 0 ? make_socket((enum router_socket_kind)kind)
					     : r->sockets[kind];
	return true;
}

/* A process that gets the lock is complete; one that does not was not needed. */
static no_return void live(const struct router *r, int lock)
{
	int keep[ROUTER_SOCKET_COUNT] = { [ROUTER_NONE] = lock };
	struct err ignored;

	if (setns(r->mounts, CLONE_NEWNS) < 0)
		_exit(1);
	(void)setsid();
	(void)!chdir("/");
	(void)prctl(PR_SET_NAME, "berth-router");
	(void)!file_poke(AT_FDCWD, "/proc/self/oom_score_adj", "-1000", &ignored);
	if (!enter(r, keep) || !proc_keep_only(keep, ROUTER_SOCKET_COUNT) || !lock_is_mine(LOCK_FD))
		_exit(1);
	crash_point("node.router-made");
	for (;;)
		pause();
}

/* Forked twice: it is not our child, and we need not reap it. */
static int start(const struct router *r, int lock, struct err *e)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, errno, "start berth-router");
	if (pid == 0) {
		if (fork() == 0)
			live(r, lock);
		_exit(0);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* ---- to find it ---- */

/* The process that holds the lock; 0: none. */
static pid_t holder_of(int lock)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(lock, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK ? whole.l_pid : 0;
}

static int take_from(struct router *r, int lock, pid_t pid, struct err *e)
{
	char path[64];

	r->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (r->netns < 0) { /* else it has them from us */
		r->netns = open(path, O_RDONLY | O_CLOEXEC);
		for (int i = ROUTER_NONE + 1; i < ROUTER_SOCKET_COUNT; i++)
			r->sockets[i] = (int)syscall(SYS_pidfd_getfd, r->pidfd, LOCK_FD + i, 0);
	}
	if (r->pidfd < 0 || r->netns < 0 || r->sockets[ROUTER_TCP] < 0 ||
	    r->sockets[ROUTER_UDP] < 0)
		return err_sys(e, errno, "take over from berth-router, process %d", (int)pid);
	if (holder_of(lock) != pid) /* else it was not another's pid meanwhile */
		return err_set(e, ERR_BUSY, "berth-router ended just now");
	return 0;
}

static int find_or_start(struct router *r, int run_fd, struct err *e)
{
	static const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
	cleanup(close_fd) int lock = openat(run_fd, "router", flags, 0600);
	pid_t pid;

	if (lock < 0)
		return err_sys(e, errno, "open router");
	pid = holder_of(lock);
	if (pid == 0 && start(r, lock, e) < 0)
		return -1;
	for (int left = BEGIN_MS; pid == 0 && left > 0; left -= TURN_MS) {
		(void)poll(NULL, 0, TURN_MS);
		pid = holder_of(lock);
	}
	if (pid == 0)
		return err_set(e, ERR_TIMEOUT, "berth-router does not come up");
	return take_from(r, lock, pid, e);
}

/* ---- to prepare it ---- */

/* In the router; what is opened here stays there. */
static int prepare(struct router *r, struct err *e)
{
	if (veth_prepare_router(e) < 0 || nft_allowlist_load_rules(e) < 0 ||
	    netlink_open(&r->links, NETLINK_ROUTE, e) < 0 ||
	    netlink_open(&r->rules, NETLINK_NETFILTER, e) < 0)
		return -1;
	r->probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return r->probe < 0 ? err_sys(e, errno, "socket") : 0;
}

void router_init(struct router *r)
{
	*r = (struct router){ .netns = -1, .pidfd = -1, .mounts = -1, .probe = -1 };
	for (int i = 0; i < ROUTER_SOCKET_COUNT; i++)
		r->sockets[i] = -1;
}

int router_open(struct router *r, int run_fd, struct err *e)
{
	cleanup(close_fd) int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int done;

	r->mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (r->mounts < 0)
		return err_sys(e, errno, "open the mount namespace");
	if (find_or_start(r, run_fd, e) < 0)
		return err_wrap(e, "the router");
	if (home < 0 || setns(r->netns, CLONE_NEWNET) < 0)
		return err_sys(e, errno, "enter the router");
	done = prepare(r, e);
	if (setns(home, CLONE_NEWNET) < 0)
		abort(); /* whatever we did next, we did it in the wrong place */
	crash_point("node.router-ready");
	return done < 0 ? err_wrap(e, "the router") : 0;
}

int router_hold_again(struct router *r, int run_fd, struct err *e)
{
	close_fd(&r->pidfd);
	r->pidfd = -1;
	return find_or_start(r, run_fd, e) < 0 ? err_wrap(e, "the router") : 0;
}

void router_close(struct router *r, bool end)
{
	struct pollfd gone = { .fd = r->pidfd, .events = POLLIN };

	netlink_close(&r->links);
	netlink_close(&r->rules);
	for (int i = 0; i < ROUTER_SOCKET_COUNT; i++)
		close_fd(&r->sockets[i]);
	close_fd(&r->probe);
	close_fd(&r->netns);
	if (end && r->pidfd >= 0) {
		proc_kill(&(struct proc){ .pidfd = r->pidfd }, SIGKILL);
		(void)poll(&gone, 1, END_MS);
	}
	close_fd(&r->pidfd);
	close_fd(&r->mounts);
}

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

/* In berth-router; the sockets come after the lock, by their kind, and until it has that a pipe. */
#define LOCK_FD      3
#define READY_FD     (LOCK_FD + ROUTER_SOCKET_COUNT)
#define BEGIN_MS     5000
#define END_MS       5000
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
static no_return void live(const struct router *r, int lock, int ready)
{
	int keep[ROUTER_SOCKET_COUNT + 1] = { [ROUTER_NONE] = lock, [ROUTER_SOCKET_COUNT] = ready };
	struct err ignored;

	if (setns(r->mounts, CLONE_NEWNS) < 0)
		_exit(1);
	(void)setsid();
	(void)!chdir("/");
	(void)prctl(PR_SET_NAME, "berth-router");
	(void)!file_poke(AT_FDCWD, "/proc/self/oom_score_adj", "-1000", &ignored);
	if (!enter(r, keep) || !proc_keep_only(keep, array_len(keep)) || !lock_is_mine(LOCK_FD))
		_exit(1);
	crash_point("node.router-made");
	(void)close(READY_FD); /* it ends with this, or with the process */
	for (;;)
		pause();
}

/* Forked twice: it is not our child, and we need not reap it. */
static int start(struct router *r, int lock, struct err *e)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "start berth-router");
	r->starting = ends[0];
	pid = fork();
	if (pid == 0) {
		if (fork() == 0)
			live(r, lock, ends[1]);
		_exit(0);
	}
	close_fd(&ends[1]);
	if (pid < 0)
		return err_sys(e, errno, "start berth-router");
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* ---- to find it ---- */

/* A signal that comes meanwhile does not end it: it begins again. */
static void await(struct pollfd *at, int ms)
{
	while (poll(at, 1, ms) < 0 && errno == EINTR)
		;
}

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

static int open_lock(int run_fd, int *ret, struct err *e)
{
	*ret = openat(run_fd, "router", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret < 0 ? err_sys(e, errno, "open router") : 0;
}

static void forget_start(struct router *r)
{
	close_fd(&r->starting);
	r->starting = -1;
}

int router_hold_begin(struct router *r, int run_fd, struct err *e)
{
	cleanup(close_fd) int lock = -1;

	close_fd(&r->pidfd);
	r->pidfd = -1;
	forget_start(r);
	if (open_lock(run_fd, &lock, e) < 0 || start(r, lock, e) < 0)
		return err_wrap(e, "the router");
	return 0;
}

int router_hold_end(struct router *r, int run_fd, struct err *e)
{
	cleanup(close_fd) int lock = -1;
	pid_t pid;

	forget_start(r);
	if (open_lock(run_fd, &lock, e) < 0)
		return err_wrap(e, "the router");
	pid = holder_of(lock);
	if (pid == 0)
		return err_set(e, ERR_BUSY, "the router: berth-router does not come up");
	return take_from(r, lock, pid, e) < 0 ? err_wrap(e, "the router") : 0;
}

static int find_or_start(struct router *r, int run_fd, struct err *e)
{
	cleanup(close_fd) int lock = -1;
	struct pollfd up = { .events = POLLIN };

	if (open_lock(run_fd, &lock, e) < 0)
		return -1;
	if (holder_of(lock) == 0) {
		if (router_hold_begin(r, run_fd, e) < 0)
			return -1;
		up.fd = r->starting;
		await(&up, BEGIN_MS);
	}
	return router_hold_end(r, run_fd, e);
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
	*r = (struct router){
		.netns = -1, .pidfd = -1, .starting = -1, .mounts = -1, .probe = -1
	};
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
		return -1;
	if (home < 0 || setns(r->netns, CLONE_NEWNET) < 0)
		return err_sys(e, errno, "enter the router");
	done = prepare(r, e);
	if (setns(home, CLONE_NEWNET) < 0)
		abort(); /* whatever we did next, we did it in the wrong place */
	crash_point("node.router-ready");
	return done < 0 ? err_wrap(e, "the router") : 0;
}

void router_close(struct router *r, int run_fd, bool end)
{
	struct pollfd up = { .fd = r->starting, .events = POLLIN };
	struct pollfd gone = { .events = POLLIN };
	struct err ignored;

	if (end && r->starting >= 0) { /* else it would be left over */
		await(&up, BEGIN_MS);
		(void)!router_hold_end(r, run_fd, &ignored);
	}
	netlink_close(&r->links);
	netlink_close(&r->rules);
	for (int i = 0; i < ROUTER_SOCKET_COUNT; i++)
		close_fd(&r->sockets[i]);
	close_fd(&r->probe);
	close_fd(&r->netns);
	if (end && r->pidfd >= 0) {
		proc_kill(&(struct proc){ .pidfd = r->pidfd }, SIGKILL);
		gone.fd = r->pidfd;
		await(&gone, END_MS);
	}
	close_fd(&r->pidfd);
	close_fd(&r->starting);
	close_fd(&r->mounts);
}

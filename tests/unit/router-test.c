/* Another berth-router is begun without waiting for it. */
#include "node/router.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/file.h"
#include "test.h"

#define LONG_MS 20000

/* The fault: a start that takes as long as it is made to. berth-router calls this first of all. */
static int *slow;

pid_t setsid(void)
{
	for (int i = 0; i < LONG_MS && __atomic_load_n(slow, __ATOMIC_SEQ_CST) == 1; i++)
		(void)usleep(1000);
	if (__atomic_load_n(slow, __ATOMIC_SEQ_CST) == 2)
		_exit(1);
	return 0;
}

static bool is_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static char dir[] = "router-test-XXXXXX";
static int run_fd = -1;

static void remove_dir(void)
{
	struct err ignored;

	(void)!file_remove_tree(AT_FDCWD, dir, &ignored);
}

/* One that was there, and whose berth-router ended. */
static struct router left_alone(void)
{
	struct router r;

	router_init(&r);
	if (run_fd < 0) {
		CHECK(mkdtemp(dir) && atexit(remove_dir) == 0);
		run_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		slow = mmap(NULL, sizeof(*slow), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		CHECK(run_fd >= 0 && slow != MAP_FAILED);
	}
	r.mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	r.netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	for (int kind = ROUTER_NONE + 1; kind < ROUTER_SOCKET_COUNT; kind++)
		r.sockets[kind] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return r;
}

TEST(the_start_of_another_one_is_not_waited_for)
{
	struct router r;
	struct err e;

	if (geteuid() != 0)
		return; /* it enters namespaces */
	r = left_alone();
	*slow = 1;
	CHECK_OK(router_hold_begin(&r, run_fd, &e), &e);
	CHECK(!is_readable(r.starting, 100));
	*slow = 0;
	CHECK(is_readable(r.starting, LONG_MS));
	CHECK_OK(router_hold_end(&r, run_fd, &e), &e);
	CHECK(r.pidfd >= 0 && r.starting < 0 && !is_readable(r.pidfd, 0));
	router_close(&r, run_fd, true);
}

TEST(one_that_ends_before_it_is_there_is_told)
{
	struct router r;
	struct err e;

	if (geteuid() != 0)
		return;
	r = left_alone();
	*slow = 2;
	CHECK_OK(router_hold_begin(&r, run_fd, &e), &e);
	CHECK(is_readable(r.starting, LONG_MS));
	CHECK_INT(router_hold_end(&r, run_fd, &e), -1);
	CHECK(strstr(e.msg, "does not come up"));
	router_close(&r, run_fd, true);
}

/* berth-node ends while another one comes up: that one is not left over. */
TEST(one_that_is_still_starting_is_ended_too)
{
	struct router r, after;
	struct err e;

	if (geteuid() != 0)
		return;
	r = left_alone();
	*slow = 0;
	CHECK_OK(router_hold_begin(&r, run_fd, &e), &e);
	router_close(&r, run_fd, true);
	after = left_alone();
	(void)usleep(200 * 1000); /* long enough for one that was left to take the lock */
	CHECK_INT(router_hold_end(&after, run_fd, &e), -1);
	router_close(&after, run_fd, true);
}

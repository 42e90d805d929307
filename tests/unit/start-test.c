#include "berthd/runtime/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "berthd/main/daemon.h"
#include "berthd/runtime/berthd.h"
#include "berthd/runtime/reactor.h"
#include "test.h"

TEST(connections_leave_files_for_our_own_work)
{
	CHECK_INT(reactor_connections(1 << 20, 2), 20000);
	CHECK(2 * (reactor_connections(20000, 2) + HTTP_REFUSING_MAX) <= 15000);
	CHECK(2 * (reactor_connections(1024, 2) + HTTP_REFUSING_MAX) <= 1024 - 256);
	CHECK(reactor_connections(1024, 2) >= HTTP_REFUSING_MAX);
	CHECK_INT(reactor_connections(64, 4), HTTP_REFUSING_MAX);
}

/* Address space for some threads, but not for all. */
static void limit_memory(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	struct rlimit limit;

	if (!f || fscanf(f, "%llu", &pages) != 1 || fclose(f) != 0)
		_exit(2);
	limit.rlim_cur = limit.rlim_max = pages * 4096 + (40UL << 20);
	if (setrlimit(RLIMIT_AS, &limit) < 0)
		_exit(2);
}

TEST(fewer_workers_than_were_asked_for_are_a_failure)
{
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		struct workers *w = calloc(1, sizeof(*w));
		struct err e = { 0 };

		limit_memory();
		if (!w || workers_open(w, "", WORKERS_MAX, &e) == 0)
			_exit(1);
		_exit(strstr(e.msg, "store workers") && !strstr(e.msg, "Success") ? 0 : 3);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
}

/* The listener of a loop without a thread would take connections and never serve them. */
TEST(fewer_loops_than_were_asked_for_are_a_failure)
{
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		struct berthd *b = calloc(1, sizeof(*b));
		struct err e = { 0 };

		for (; b && b->reactor_count < BERTHD_LOOPS_MAX; b->reactor_count++)
			if (uv_loop_init(&b->reactors[b->reactor_count].loop) < 0)
				_exit(2);
		limit_memory();
		if (!b || berthd_start(b, &e) == 0)
			_exit(1);
		_exit(strstr(e.msg, "loop threads") && !strstr(e.msg, "Success") ? 0 : 3);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
}

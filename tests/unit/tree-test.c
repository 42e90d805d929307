#include "init/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define TURNS 2000
#define SAME  100 /* the number that all of them get */

/* Two that start one process after the other, in turns and with one number. */
struct turns {
	volatile int heard;   /* signals, by the member of the tree */
	volatile int hits;    /* and by children of the one that is none */
	volatile int same[2]; /* how often each got the number */
	volatile int odd;     /* or another one */
};

static struct turns *shared;

static void on_usr1(int signum)
{
	(void)signum;
	shared->heard++;
}

/* The next process of this namespace gets that number, if it is free. */
static bool choose_number(int pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", pid - 1);
	bool done = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0)
		close(fd);
	return done;
}

/* Lives for a moment: long enough to be seen. */
static int start_one(int who)
{
	int status = 0;
	pid_t pid;

	(void)choose_number(SAME);
	pid = fork();
	if (pid == 0) {
		if (who == 0)
			signal(SIGUSR1, SIG_IGN);
		for (volatile int i = 0; i < 20000; i++)
			;
		_exit(0);
	}
	if (pid == SAME)
		shared->same[who]++;
	else
		shared->odd++;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void take_turns(int who, int in, int out)
{
	char turn;

	for (;;) {
		ssize_t n = read(in, &turn, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != 1)
			_exit(0);
		if (WIFSIGNALED(start_one(who)) && who == 1)
			shared->hits++;
		while (write(out, &turn, 1) < 0 && errno == EINTR)
			;
	}
}

/* Is the tree, and signals it all the time. */
static void signal_a_lot(int in, int out)
{
	struct tree t;
	pid_t member;

	tree_open(&t, NULL);
	member = fork();
	if (member == 0) {
		sigaction(SIGUSR1,
			  &(struct sigaction){ .sa_handler = on_usr1, .sa_flags = SA_RESTART },
			  NULL);
		shared->heard = 1;
		take_turns(0, in, out);
	}
	while (shared->heard == 0)
		usleep(1000);
	(void)!write(out, "", 1); /* the other one begins */
	while (shared->same[1] < TURNS && shared->odd < TURNS)
		tree_signal(&t, SIGUSR1);
	_exit(0);
}

/* The first process of a pid namespace of its own. */
static void world(void)
{
	int to_member[2], to_other[2];
	pid_t other, tester;

	if (mount("proc", "/proc", "proc", 0, NULL) < 0 || !choose_number(SAME))
		_exit(77);
	(void)!pipe2(to_member, O_CLOEXEC);
	(void)!pipe2(to_other, O_CLOEXEC);
	(void)choose_number(10);
	other = fork();
	if (other == 0)
		take_turns(1, to_other[0], to_member[1]);
	tester = fork();
	if (tester == 0)
		signal_a_lot(to_member[0], to_other[1]);
	while (waitpid(tester, NULL, 0) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Namespaces are root's to make, and a kernel may not let numbers be chosen. */
static int run_world(void)
{
	pid_t outer = fork(), inner;
	int status = 0;

	if (outer == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		inner = fork();
		if (inner == 0)
			world();
		(void)waitpid(inner, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	(void)waitpid(outer, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_signal_reaches_no_process_that_has_the_number_of_one_that_ended)
{
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	status = run_world();
	if (status == 77)
		return;
	CHECK_INT(status, 0);
	CHECK(shared->heard > 1);
	CHECK(shared->same[1] >= TURNS);
	CHECK_INT(shared->hits, 0);
}

#define PAIRS     40
#define FEW_FILES 16
#define WAIT_MS   60000

/* Is a tree of pairs, a parent and its child each: how many does a signal leave there? */
static int signal_with_few_files(void)
{
	const struct rlimit few = { FEW_FILES, FEW_FILES };
	int ready[2], left = 2 * PAIRS;
	struct tree t;
	char byte;

	tree_open(&t, NULL);
	(void)!pipe2(ready, O_CLOEXEC);
	for (int i = 0; i < PAIRS; i++)
		if (fork() == 0) {
			(void)fork();
			(void)!write(ready[1], "", 1);
			for (;;)
				pause();
		}
	for (int i = 0; i < 2 * PAIRS; i++)
		if (read(ready[0], &byte, 1) != 1)
			return -1;
	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		return -1;
	tree_signal(&t, SIGTERM);
	for (int ms = 0; left > 0 && ms < WAIT_MS; ms++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			left--;
		usleep(1000);
	}
	(void)!tree_kill(&t);
	return left;
}

TEST(a_signal_reaches_all_with_fewer_descriptors_than_processes)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(signal_with_few_files());
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
}

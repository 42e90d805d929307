/*
 * Runs inside a sandbox. `probe eat MB` takes memory until somebody stops it; `eat-shared`
 * in a process that shares its own, `eat-thread` when its first thread has ended; `eat-forked` has
 * a child use what it mapped itself, and then kills itself. `probe liar HEX`
 * (runsc) takes init's place on its socket, and says HEX to everybody. `probe terminals SECONDS`
 * opens as many as it gets. `probe trace` holds a child. As berth-init or as an engine it is up,
 * and says nothing; as an init it ends at once with a file /dead, and after it hung up with
 * /dying. What must not work is src/probe's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch[65536];

static int eat(long megabytes)
{
	for (long i = 0; i < megabytes; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED) {
			printf("no more after %ld MB\n", i);
			return 1;
		}
		memset(p, 'x', 1 << 20);
	}
	puts("ate it all");
	return 0;
}

static int eat_there(void *megabytes)
{
	usleep(200000); /* what started it has come to its end */
	return eat(*(long *)megabytes);
}

static int eat_beside(long megabytes, int flags)
{
	static char stack[1 << 16];

	if (clone(eat_there, stack + sizeof(stack), CLONE_VM | flags, &megabytes) < 0)
		return 1;
	if (!(flags & CLONE_THREAD))
		for (;;)
			pause();
	syscall(SYS_exit, 0); /* this thread alone: its stack stays */
	return 0;
}

static int eat_forked(long megabytes)
{
	size_t len = (size_t)megabytes << 20;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pid_t pid = p == MAP_FAILED ? -1 : fork();
	int status;

	if (pid < 0)
		return 1;
	if (pid == 0) {
		memset(p, 'x', len);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		return 1;
	return kill(getpid(), SIGKILL);
}

/* A child that is stopped because we trace it, and stays so. */
static int trace(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(1);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	waitpid(pid, &status, 0);
	puts(WIFSTOPPED(status) ? "tracing" : "may not trace");
	fflush(stdout);
	for (;;)
		pause();
}

static int liar(const char *hex)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/.berth/sock/init" };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t len = 0;

	for (unsigned byte; sscanf(hex + 2 * len, "%2x", &byte) == 1; len++)
		scratch[len] = (char)byte;
	unlink(at.sun_path);
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 64) < 0)
		return 1;
	if (fork() > 0)
		return 0;
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (int fd; (fd = accept(s, NULL, NULL)) >= 0;) {
		char asked[4096];

		(void)!read(fd, asked, sizeof(asked));
		(void)!write(fd, scratch, len); /* and never closes */
	}
	return 0;
}

/* All the terminals there are, and hold them for a while. */
static int terminals(long seconds)
{
	int n = 0;

	while (n < 10000 && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		n++;
	printf("%d\n", n);
	fflush(stdout);
	sleep((unsigned)seconds);
	return 0;
}

/* Slowly, and in the kernel's order: its files are closed before its end can be seen. */
static int die(void)
{
	(void)!close(accept(3, NULL, NULL)); /* its listening socket, where the engine passes one */
	close(3);
	usleep(300000);
	return 3;
}

/* It keeps the socket it was given, and never reads it. */
static int mute(void)
{
	while (pause() < 0) /* never anything else */
		;
	return 1;
}

int main(int argc, char **argv)
{
	if (strcmp(argv[0], "/.berth/init") == 0 && access("/dead", F_OK) == 0)
		return 3;
	if (strcmp(argv[0], "/.berth/init") == 0)
		return access("/dying", F_OK) == 0 ? die() : mute();
	if (strcmp(argv[0], "crun") == 0 || strcmp(argv[0], "runsc") == 0)
		return mute();
	if (argc == 3 && strcmp(argv[1], "terminals") == 0)
		return terminals(atol(argv[2]));
	if (argc == 2 && strcmp(argv[1], "trace") == 0)
		return trace();
	if (argc == 3 && strcmp(argv[1], "liar") == 0)
		return liar(argv[2]);
	if (argc == 3 && strcmp(argv[1], "eat") == 0)
		return eat(atol(argv[2]));
	if (argc == 3 && strcmp(argv[1], "eat-forked") == 0)
		return eat_forked(atol(argv[2]));
	if (argc == 3 && strcmp(argv[1], "eat-shared") == 0)
		return eat_beside(atol(argv[2]), SIGCHLD);
	if (argc == 3 && strcmp(argv[1], "eat-thread") == 0)
		return eat_beside(atol(argv[2]), CLONE_THREAD | CLONE_SIGHAND);
	return 2;
}

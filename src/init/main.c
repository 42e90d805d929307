/* berth-init: the first process of every sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/rootfs-setup.h"
#include "init/server.h"
#include "init/user.h"

#define LISTEN_FD 3

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Nothing a runtime left open by mistake may reach a command. */
static void close_from(int first)
{
	long max = sysconf(_SC_OPEN_MAX);

	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
		return;
	for (int fd = first; fd < max && fd < 65536; fd++)
		close(fd);
}

static int open_server(int argc, char **argv, struct server *s, struct err *e)
{
	if (argc >= 3 && strcmp(argv[1], "--fd") == 0 && strcmp(argv[2], "3") == 0) {
		close_from(LISTEN_FD + 1);
		return server_open_fd(s, LISTEN_FD, e);
	}
	if (argc >= 3 && strcmp(argv[1], "--listen") == 0) {
		close_from(LISTEN_FD);
		return server_open_path(s, argv[2], e);
	}
	return err_set(e, ERR_INVALID, "usage: berth-init --fd 3 | --listen PATH [--trust TEXT] "
				       "[--user IDS]");
}

/* The value of an option behind the first two words, or NULL. */
static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 3; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return NULL;
}

/* The same, and no longer in what `ps` shows: a certificate is a thousand letters. */
static char *take_option(int argc, char **argv, const char *name)
{
	for (int i = 3; i + 1 < argc && argv[i + 1]; i += 2) {
		char *value = strcmp(argv[i], name) == 0 ? strdup(argv[i + 1]) : NULL;

		if (!value)
			continue;
		memset(argv[i], 0, strlen(argv[i]));
		memset(argv[i + 1], 0, strlen(argv[i + 1]));
		return value;
	}
	return NULL;
}

/* A guest may get at what we hold open, on gVisor: it must not be a file of the host. */
static void forget_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	close_fd(&null);
}

int main(int argc, char **argv)
{
	const char *user = option(argc, argv, "--user");
	bool is_box = getpid() == 1; /* and not a test */
	struct server s;
	struct err e;
	char *trust;

	/* Commands run as the same user: keep them out of our memory. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	umask(022); /* the host's services have a narrower one: not for what is made here */
	if ((user && user_set(user, &e) < 0) || open_server(argc, argv, &s, &e) < 0 ||
	    (is_box && server_hide_cgroups(&s, &e) < 0)) {
		fprintf(stderr, "berth-init: %s\n", e.msg);
		return EXIT_FAILURE;
	}
	forget_stdio();
	trust = take_option(argc, argv, "--trust");
	if (is_box)
		rootfs_setup(trust);
	free(trust);
	/* As pid 1 this is so anyway; elsewhere orphans come to us all the same. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	server_run(&s);
	return EXIT_SUCCESS;
}

#include "probe/helper.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MAX        65536
#define RENAME_EXCHANGE 2

int copy_self(const char *path)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to;
	char some[16384];
	ssize_t n;

	(void)unlink(path);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (from < 0 || to < 0)
		return -1;
	while ((n = read(from, some, sizeof(some))) > 0)
		if (write(to, some, (size_t)n) != n)
			return -1;
	close(from);
	close(to);
	return n < 0 ? -1 : 0;
}

bool file_has(const char *path, const char *word)
{
	static char text[LOOK_MAX + 1];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n, len = 0;

	if (fd < 0)
		return false;
	while (len < LOOK_MAX && (n = read(fd, text + len, (size_t)(LOOK_MAX - len))) > 0)
		len += n;
	close(fd);
	return word[0] && memmem(text, (size_t)len, word, strlen(word));
}

/* A neighbour to be found: TOKEN in a file of the image, in memory, on every kind of socket. */
static no_return void neighbour(const char *token, int port, int key)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int tcp = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int shared = open("/etc/shared", O_WRONLY | O_TRUNC | O_CLOEXEC);
	int memory = shmget(key, 4096, IPC_CREAT | 0666);
	char *at = memory < 0 ? NULL : shmat(memory, NULL, 0);
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%s", token);
	socklen_t len;

	(void)!write(shared, token, strlen(token));
	if (at && at != (void *)-1)
		snprintf(at, 4096, "%s", token);
	(void)bind(tcp, (struct sockaddr *)&any, sizeof(any));
	(void)listen(tcp, 8);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	(void)bind(local, (struct sockaddr *)&name, len);
	(void)listen(local, 8);
	printf("here\n");
	fflush(stdout);
	for (;;) {
		struct pollfd p[] = {
			{ .fd = tcp, .events = POLLIN },
			{ .fd = local, .events = POLLIN },
		};

		if (poll(p, array_len(p), -1) < 0)
			continue;
		for (size_t i = 0; i < array_len(p); i++) {
			int fd = p[i].revents ? accept(p[i].fd, NULL, NULL) : -1;

			if (fd >= 0) {
				(void)!write(fd, token, strlen(token));
				close(fd);
			} else if (p[i].revents) {
				sleep(1);
			}
		}
	}
}

/* PATH and PATH.other change places for some seconds. */
static int swap(const char *path)
{
	char other[4096];
	time_t end = time(NULL) + 20;

	snprintf(other, sizeof(other), "%s.other", path);
	printf("here\n");
	fflush(stdout);
	while (time(NULL) < end)
		(void)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
	return 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Up from here: is our root on the way? */
static int where(void)
{
	char cwd[4096];
	struct stat root, at, before = { 0 };

	if (stat("/", &root) < 0 || !getcwd(cwd, sizeof(cwd)) || cwd[0] != '/')
		return puts("outside") < 0;
	for (int i = 0; i < 256 && stat(".", &at) == 0 && !same(&at, &before); i++) {
		if (same(&at, &root))
			return puts("inside") < 0;
		before = at;
		if (chdir("..") < 0)
			break;
	}
	return puts("outside") < 0;
}

/* Whether we are more than the id that ran us: 1. */
static int rights(long expected)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	if (geteuid() != (uid_t)expected || getegid() != (gid_t)expected)
		return 1;
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "CapEff:", 7) == 0 && strtoull(line + 7, NULL, 16) != 0)
			return 1;
	return 0;
}

/* So many MiB to standard output. */
static int shout(long megabytes)
{
	static char some[1 << 20];

	memset(some, 'x', sizeof(some));
	for (long i = 0; i < megabytes; i++)
		if (write(STDOUT_FILENO, some, sizeof(some)) < 0)
			return 1;
	return 0;
}

static int plant(const char *target, const char *link)
{
	(void)unlink(link);
	return symlink(target, link) < 0;
}

static int show(const char *path)
{
	char some[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, some, sizeof(some));

	return n < 0 || write(STDOUT_FILENO, some, (size_t)n) != n;
}

/* Ours, but for the loopback's. */
static int addresses(void)
{
	struct ifaddrs *all = NULL;
	char text[INET6_ADDRSTRLEN];

	if (getifaddrs(&all) < 0)
		return 1;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		const void *at = a->ifa_addr;

		if (!at || strcmp(a->ifa_name, "lo") == 0)
			continue;
		if (a->ifa_addr->sa_family == AF_INET)
			at = &((const struct sockaddr_in *)at)->sin_addr;
		else if (a->ifa_addr->sa_family == AF_INET6)
			at = &((const struct sockaddr_in6 *)at)->sin6_addr;
		else
			continue;
		if (inet_ntop(a->ifa_addr->sa_family, at, text, sizeof(text)))
			puts(text);
	}
	freeifaddrs(all);
	return 0;
}

int helper(int argc, char **argv)
{
	const char *what = argc ? argv[0] : "";

	if (argc == 4 && strcmp(what, "neighbour") == 0)
		neighbour(argv[1], (int)strtol(argv[2], NULL, 10),
			  (int)strtol(argv[3], NULL, 10));
	if (argc == 2 && strcmp(what, "swap") == 0)
		return swap(argv[1]);
	if (argc == 1 && strcmp(what, "addresses") == 0)
		return addresses();
	if (argc == 1 && strcmp(what, "where") == 0)
		return where();
	if (argc == 2 && strcmp(what, "rights") == 0)
		return rights(strtol(argv[1], NULL, 10));
	if (argc == 2 && strcmp(what, "shout") == 0)
		return shout(strtol(argv[1], NULL, 10));
	if (argc == 3 && strcmp(what, "plant") == 0)
		return plant(argv[1], argv[2]);
	if (argc == 3 && strcmp(what, "uproot") == 0)
		return rename(argv[1], "/moved") < 0 || plant(argv[2], argv[1]);
	if (argc == 2 && strcmp(what, "hold") == 0)
		return shared_hold(argv[1]);
	if (argc == 2 && strcmp(what, "one") == 0)
		return shared_one(argv[1]);
	if (argc == 2 && strcmp(what, "release") == 0)
		return kill((pid_t)strtol(argv[1], NULL, 10), SIGKILL) < 0;
	if (argc == 2 && strcmp(what, "show") == 0)
		return show(argv[1]);
	return 2;
}

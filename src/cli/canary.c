#include "cli/canary.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/file.h"
#include "lib/str.h"

#define BACKLOG 64
#define PLACE   "/tmp"
#define PREFIX  "berth-canary-"

static void set_names(struct canary *c)
{
	snprintf(c->token, sizeof(c->token), "berth-token-%s", c->id);
	snprintf(c->dir, sizeof(c->dir), PLACE "/" PREFIX "%s", c->id);
	snprintf(c->file, sizeof(c->file), "%s/secret", c->dir);
	c->key = (int)(str_hash(c->id) & 0x3fffffff) | 0x10000;
}

/* A socket that listens, on TCP and UDP the same port of all addresses. */
static int open_port(int type, uint16_t *port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
	socklen_t len = sizeof(at);
	int s = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int off = 0;

	if (s < 0)
		return -1;
	(void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    (type == SOCK_STREAM && listen(s, BACKLOG) < 0) ||
	    getsockname(s, (struct sockaddr *)&at, &len) < 0) {
		close(s);
		return -1;
	}
	*port = ntohs(at.sin6_port);
	return s;
}

static int open_name(const char *token)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(token);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(at.sun_path + 1, token, strlen(token));
	if (s >= 0 && bind(s, (struct sockaddr *)&at, (socklen_t)len) == 0 &&
	    listen(s, BACKLOG) == 0)
		return s;
	return -1;
}

static no_return void serve(const int sockets[3], const char *token, pid_t parent)
{
	struct pollfd p[3];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (size_t i = 0; i < array_len(p); i++)
		p[i] = (struct pollfd){ .fd = sockets[i], .events = POLLIN };
	for (;;) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		char some[64];

		if (poll(p, array_len(p), -1) < 0)
			continue;
		if (p[0].revents && recvfrom(p[0].fd, some, sizeof(some), 0,
					     (struct sockaddr *)&from, &len) >= 0)
			(void)sendto(p[0].fd, token, strlen(token), 0, (struct sockaddr *)&from,
				     len);
		for (size_t i = 1; i < array_len(p); i++) {
			int fd = p[i].revents ? accept4(p[i].fd, NULL, NULL, SOCK_CLOEXEC) : -1;

			if (fd < 0)
				continue;
			(void)!write_all(fd, token, strlen(token));
			close(fd);
		}
	}
}

static int start_server(struct canary *c, struct err *e)
{
	int sockets[3] = { -1, -1, -1 }, why;
	pid_t self = getpid();

	sockets[1] = open_port(SOCK_STREAM, &c->port);
	if (sockets[1] >= 0)
		sockets[0] = open_port(SOCK_DGRAM, &c->port);
	sockets[2] = open_name(c->token);
	c->server = sockets[0] < 0 || sockets[2] < 0 ? -1 : fork();
	why = errno;
	if (c->server == 0) {
		close(c->lock);
		serve(sockets, c->token, self);
	}
	for (size_t i = 0; i < array_len(sockets); i++)
		close_fd(&sockets[i]);
	return c->server < 0 ? err_sys(e, why, "listen for what must not come") : 0;
}

/* Whose directory is locked lives. It is locked before anything is in it. */
static int open_dir(struct canary *c, struct err *e)
{
	struct stat st;

	if (mkdir(c->dir, 0700) < 0)
		return err_sys(e, errno, "make %s", c->dir);
	c->lock = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->lock < 0 || flock(c->lock, LOCK_EX | LOCK_NB) < 0 || fstat(c->lock, &st) < 0)
		return err_sys(e, errno, "lock %s", c->dir);
	if (st.st_nlink == 0)
		return err_set(e, ERR_BUSY, "%s was taken for a dead one's", c->dir);
	return 0;
}

static int open_files(struct canary *c, struct err *e)
{
	int fd = open(c->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || write_all(fd, c->token, strlen(c->token)) < 0 || fchmod(fd, 0666) < 0 ||
	    fchmod(c->lock, 0777) < 0) {
		close_fd(&fd);
		return err_sys(e, errno, "write %s", c->file);
	}
	close(fd);
	return 0;
}

static void open_memory(const struct canary *c)
{
	char name[sizeof(c->token) + 1];
	struct mq_attr small = { .mq_maxmsg = 1, .mq_msgsize = 64 };
	int fd;

	(void)shmget(c->key, 4096, IPC_CREAT | 0666);
	(void)msgget(c->key, IPC_CREAT | 0666);
	snprintf(name, sizeof(name), "/%s", c->token);
	fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	close_fd(&fd);
	fd = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666, &small);
	close_fd(&fd);
}

static void find_addresses(struct canary *c)
{
	struct ifaddrs *all = NULL;

	strv_add(&c->addresses, "127.0.0.1");
	strv_add(&c->addresses, "::1");
	if (getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		char text[INET6_ADDRSTRLEN];
		const void *at = a->ifa_addr, *bytes = NULL;

		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET)
			bytes = &((const struct sockaddr_in *)at)->sin_addr;
		else if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET6)
			bytes = &((const struct sockaddr_in6 *)at)->sin6_addr;
		if (bytes && c->addresses.len < 24 &&
		    inet_ntop(a->ifa_addr->sa_family, bytes, text, sizeof(text)) &&
		    strcmp(text, "127.0.0.1") != 0 && strcmp(text, "::1") != 0)
			strv_add(&c->addresses, text);
	}
	freeifaddrs(all);
}

int canary_open(struct canary *c, struct err *e)
{
	*c = (struct canary){ .server = -1, .lock = -1 };
	id_random(c->id, ID_RANDOM_CHARS);
	set_names(c);
	if (open_dir(c, e) < 0 || open_files(c, e) < 0 || start_server(c, e) < 0)
		return -1;
	open_memory(c);
	find_addresses(c);
	return 0;
}

/* All that has a name; the directory last, because it tells of the rest. */
static void remove_all(const struct canary *c)
{
	int memory = shmget(c->key, 0, 0), queue = msgget(c->key, 0);
	char name[sizeof(c->token) + 1];
	struct err ignored;

	if (memory >= 0)
		(void)shmctl(memory, IPC_RMID, NULL);
	if (queue >= 0)
		(void)msgctl(queue, IPC_RMID, NULL);
	snprintf(name, sizeof(name), "/%s", c->token);
	(void)shm_unlink(name);
	(void)mq_unlink(name);
	(void)!file_remove_tree(AT_FDCWD, c->dir, &ignored);
}

void canary_close(struct canary *c)
{
	if (!c->id[0]) /* never opened */
		return;
	if (c->server > 0) {
		kill(c->server, SIGKILL);
		(void)waitpid(c->server, NULL, 0);
	}
	remove_all(c);
	close_fd(&c->lock);
	strv_done(&c->addresses);
}

/*
 * True for a canary that our user made and no process holds any more, with its id in `ret`.
 * Other users may make such a name, but then it is theirs.
 */
static bool is_dead(int place, const char *name, struct canary *ret)
{
	cleanup(close_fd) int fd = -1;
	struct stat st;

	*ret = (struct canary){ .lock = -1 };
	if (!str_starts(name, PREFIX) ||
	    !str_copy(ret->id, sizeof(ret->id), name + strlen(PREFIX)) ||
	    strspn(ret->id, "0123456789abcdefghijklmnopqrstuv") != ID_RANDOM_CHARS)
		return false;
	set_names(ret);
	fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

int canary_sweep(canary_fn *clear, void *arg, struct err *e)
{
	cleanup(dir_closep) DIR *place = opendir(PLACE);
	const struct dirent *d;
	struct canary dead;

	while (place && (d = readdir(place))) {
		if (!is_dead(dirfd(place), d->d_name, &dead))
			continue;
		if (clear(arg, dead.id, e) < 0)
			return -1;
		remove_all(&dead);
	}
	return 0;
}

bool canary_untouched(const struct canary *c, char *found, size_t size)
{
	cleanup(buf_done) struct buf text = buf_make(4096);
	cleanup(dir_closep) DIR *dir = opendir(c->dir);
	const struct dirent *d;
	struct err e;

	if (!dir || file_read(AT_FDCWD, c->file, &text, &e) < 0 ||
	    strcmp(buf_str(&text), c->token) != 0) {
		snprintf(found, size, "%s has changed", c->file);
		return false;
	}
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
		    strcmp(d->d_name, "secret") != 0) {
			snprintf(found, size, "%s/%.60s is there", c->dir, d->d_name);
			return false;
		}
	return true;
}

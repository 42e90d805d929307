#include "lib/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/errno-map.h"
#include "lib/open-beneath.h"

#define CHUNK     (256UL * 1024)
#define DEPTH_MAX 256 /* each level is an open descriptor */
#define NO_WAIT   (O_NONBLOCK | O_NOCTTY)

static int flush_head(struct pack *p, struct err *e)
{
	int n = p->write(p->data, p->head.data, p->head.len, e);

	buf_clear(&p->head);
	return n;
}

static int add_entry(struct pack *p, enum tar_type type, const struct stat *st, const char *target,
		     struct err *e)
{
	struct tar_entry x = {
		.type = type,
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.mtime = st->st_mtime > 0 ? (uint64_t)st->st_mtime : 0,
	};

	memcpy(x.path, p->path, sizeof(x.path));
	snprintf(x.target, sizeof(x.target), "%s", target ? target : "");
	tar_add_entry(&p->head, &x);
	p->count++;
	return flush_head(p, e);
}

/* Exactly as many bytes as the head says, or the archive is none. */
static int add_contents(struct pack *p, int fd, uint64_t size, struct err *e)
{
	for (uint64_t left = size; left > 0;) {
		ssize_t n = read(fd, p->chunk, left < CHUNK ? (size_t)left : CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_file(e, errno, "read %.150s", p->path);
		if (n == 0)
			return err_set(e, ERR_CONFLICT, "%.150s became shorter while it was read",
				       p->path);
		if (p->write(p->data, p->chunk, (size_t)n, e) < 0)
			return -1;
		left -= (uint64_t)n;
	}
	tar_add_padding(&p->head, size);
	return flush_head(p, e);
}

static int add_file(struct pack *p, int dir, const char *name, int flags, struct err *e)
{
	cleanup(close_fd) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | flags);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_file(e, errno, "read %.150s", p->path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0; /* it is something else now */
	if (add_entry(p, TAR_FILE, &st, NULL, e) < 0)
		return -1;
	return add_contents(p, fd, (uint64_t)st.st_size, e);
}

static int add_symlink(struct pack *p, int dir, const char *name, const struct stat *st,
		       struct err *e)
{
	char target[TAR_PATH_SIZE];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return 0; /* it is something else now */
	target[n] = '\0';
	return add_entry(p, TAR_SYMLINK, st, target, e);
}

static int add_below(struct pack *p, int fd, int depth, struct err *e);

static int add_name(struct pack *p, int dir, const char *name, int depth, struct err *e)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_file(e, errno, "read %.150s", p->path);
	if (S_ISREG(st.st_mode))
		return add_file(p, dir, name, NO_WAIT | O_NOFOLLOW, e);
	if (S_ISLNK(st.st_mode))
		return add_symlink(p, dir, name, &st, e);
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (depth == DEPTH_MAX)
		return err_file(e, ENAMETOOLONG, "%.100s is too deep", p->path);
	fd = dir_open_beneath(dir, name);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_file(e, errno, "read %.150s", p->path);
	if (add_entry(p, TAR_DIRECTORY, &st, NULL, e) < 0) {
		close_fd(&fd);
		return -1;
	}
	return add_below(p, fd, depth + 1, e);
}

static int add_below(struct pack *p, int fd, int depth, struct err *e)
{
	size_t len = strlen(p->path);
	DIR *d = fdopendir(fd); /* takes the descriptor */
	struct dirent *entry;
	int n = 0;

	if (!d) {
		close_fd(&fd);
		return err_file(e, errno, "read %.150s", p->path);
	}
	while (n == 0 && (entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (len + strlen(entry->d_name) + 2 > sizeof(p->path)) {
			n = err_file(e, ENAMETOOLONG, "read %.150s", p->path);
			break;
		}
		snprintf(p->path + len, sizeof(p->path) - len, "%s%s", len > 0 ? "/" : "",
			 entry->d_name);
		n = add_name(p, fd, entry->d_name, depth, e);
		p->path[len] = '\0';
	}
	closedir(d);
	return n;
}

static int pack_it(struct pack *p, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct stat st;
	int fd;

	if (stat(path, &st) < 0)
		return err_file(e, errno, "read %.150s", path);
	if (S_ISDIR(st.st_mode)) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? err_file(e, errno, "read %.150s", path) : add_below(p, fd, 0, e);
	}
	if (!S_ISREG(st.st_mode))
		return err_file(e, ENXIO, "read %.150s", path);
	if (strlen(name) >= sizeof(p->path))
		return err_file(e, ENAMETOOLONG, "read %.150s", path);
	memcpy(p->path, name, strlen(name) + 1);
	return add_file(p, AT_FDCWD, path, NO_WAIT, e); /* here a link is followed */
}

int pack_path(struct pack *p, const char *path, struct err *e)
{
	int n;

	p->head = buf_make(256UL * 1024);
	p->chunk = xcalloc(1, CHUNK);
	p->path[0] = '\0';
	n = pack_it(p, path, e);
	if (n == 0) {
		tar_add_end(&p->head);
		n = flush_head(p, e);
	}
	buf_done(&p->head);
	free(take_ptr(p->chunk));
	return n;
}

#include "lib/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/errno-map.h"
#include "lib/open-beneath.h"

static int fault(const struct unpack *u, int errnum, struct err *e)
{
	return err_file(e, errnum, "unpack %.150s", u->entry.path);
}

/* The next directory on the way, made if it is not there; never through a link. */
static int step_into(int dir, const char *name, int *ret)
{
	int fd = dir_open_beneath(dir, name);

	if (fd < 0 && errno == ENOENT && mkdirat(dir, name, 0755) == 0)
		fd = dir_open_beneath(dir, name);
	if (fd < 0)
		return -1;
	*ret = fd;
	return 0;
}

/* Opens the directory at a clean path below u->dir. -1 with errno. */
static int walk_to(const struct unpack *u, const char *path, int *ret)
{
	int at = fcntl(u->dir, F_DUPFD_CLOEXEC, 3);
	char name[256];

	while (at >= 0 && *path) {
		size_t len = strcspn(path, "/");
		int next;

		if (len >= sizeof(name)) {
			close_fd(&at);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		if (step_into(at, name, &next) < 0) {
			close_fd(&at);
			return -1;
		}
		close_fd(&at);
		at = next;
		path += len + (path[len] == '/');
	}
	*ret = at;
	return at < 0 ? -1 : 0;
}

/* Splits a clean path and has its directory open in u->parent. */
static const char *enter_parent(struct unpack *u, char *path)
{
	char *slash = strrchr(path, '/');
	const char *parent = slash ? path : "";

	if (slash)
		*slash = '\0';
	if (u->parent < 0 || strcmp(u->parent_path, parent) != 0) {
		close_fd(&u->parent);
		u->parent = -1;
		if (walk_to(u, parent, &u->parent) < 0) {
			u->parent = -1;
			return NULL;
		}
		snprintf(u->parent_path, sizeof(u->parent_path), "%s", parent);
	}
	return slash ? slash + 1 : path;
}

/* The parent may be what is replaced now. */
static void forget_parent(struct unpack *u)
{
	close_fd(&u->parent);
	u->parent = -1;
}

static int make_directory(struct unpack *u, const char *name, struct err *e)
{
	cleanup(close_fd) int fd = -1;
	bool made = mkdirat(u->parent, name, 0700) == 0;

	if (!made && errno != EEXIST)
		return fault(u, errno, e);
	fd = dir_open_beneath(u->parent, name);
	if (fd < 0)
		return fault(u, errno, e);
	if (made && fchmod(fd, (u->entry.mode & u->modes) | 0700) < 0)
		return fault(u, errno, e);
	return 0;
}

static int link_as(const struct unpack *u, int from_dir, const char *from, const char *name)
{
	return from_dir >= 0 ? linkat(from_dir, from, u->parent, name, 0)
			     : symlinkat(u->entry.target, u->parent, name);
}

/* A link takes a name's place at once, like a file does. */
static int make_link(struct unpack *u, const char *name, int from_dir, const char *from,
		     struct err *e)
{
	char temp[64];
	int n;

	if (link_as(u, from_dir, from, name) == 0) {
		forget_parent(u);
		return 0;
	}
	snprintf(temp, sizeof(temp), ATOMIC_FILE_PREFIX "link-%d-%llu", (int)getpid(),
		 (unsigned long long)u->count);
	if (link_as(u, from_dir, from, temp) < 0)
		return fault(u, errno, e);
	if (renameat(u->parent, temp, u->parent, name) < 0) {
		n = errno;
		(void)unlinkat(u->parent, temp, 0);
		return fault(u, n, e);
	}
	(void)unlinkat(u->parent, temp, 0); /* two names of one file already: rename does nothing */
	forget_parent(u);
	return 0;
}

static int make_hardlink(struct unpack *u, const char *name, struct err *e)
{
	cleanup(close_fd) int dir = -1;
	char target[TAR_PATH_SIZE];
	char *slash;

	if (tar_path_below(u->entry.target, target, e) < 0)
		return -1;
	slash = strrchr(target, '/');
	if (slash)
		*slash = '\0';
	if (walk_to(u, slash ? target : "", &dir) < 0)
		return fault(u, errno, e);
	return make_link(u, name, dir, slash ? slash + 1 : target, e);
}

static int begin_file(struct unpack *u, const char *name, struct err *e)
{
	struct stat st;

	if (fstatat(u->parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return fault(u, EISDIR, e);
	if (atomic_file_begin(&u->file, u->parent, name) < 0)
		return fault(u, errno, e);
	return 0;
}

static int on_entry(void *data, const struct tar_entry *x, struct err *e)
{
	struct unpack *u = data;
	char path[TAR_PATH_SIZE];
	const char *name;

	u->entry = *x;
	if (tar_path_below(x->path, path, e) < 0)
		return -1;
	if (!path[0]) /* the directory itself is the caller's */
		return x->type == TAR_DIRECTORY ? 0 : fault(u, EISDIR, e);
	name = enter_parent(u, path);
	if (!name)
		return fault(u, errno == ELOOP ? ENOTDIR : errno, e);
	u->count++;
	switch (x->type) {
	case TAR_FILE:
		return begin_file(u, name, e);
	case TAR_DIRECTORY:
		return make_directory(u, name, e);
	case TAR_SYMLINK:
		return make_link(u, name, -1, NULL, e);
	case TAR_HARDLINK:
		return make_hardlink(u, name, e);
	default:
		return fault(u, ENXIO, e);
	}
}

static int on_bytes(void *data, const void *bytes, size_t len, struct err *e)
{
	struct unpack *u = data;

	return atomic_file_write(&u->file, bytes, len) < 0 ? fault(u, errno, e) : 0;
}

static int on_entry_end(void *data, struct err *e)
{
	struct unpack *u = data;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { 0 } };

	if (u->file.fd < 0)
		return 0;
	times[1].tv_sec = (time_t)u->entry.mtime;
	(void)futimens(u->file.fd, times); /* a time is not worth failing for */
	if (atomic_file_commit(&u->file, NULL, u->entry.mode & u->modes) < 0)
		return fault(u, errno, e);
	return 0;
}

static const struct tar_events events = { on_entry, on_bytes, on_entry_end };

void unpack_init(struct unpack *u, int dir, uint32_t modes)
{
	*u = (struct unpack){ .dir = dir, .modes = modes, .parent = -1, .file = { .fd = -1 } };
	tar_reader_init(&u->reader, &events, u);
}

void unpack_done(struct unpack *u)
{
	atomic_file_abort(&u->file);
	tar_reader_done(&u->reader);
	forget_parent(u);
}

int unpack_feed(struct unpack *u, const void *bytes, size_t len, struct err *e)
{
	return tar_reader_feed(&u->reader, bytes, len, e);
}

int unpack_end(struct unpack *u, struct err *e)
{
	return tar_reader_end(&u->reader, e);
}

/* A name and everything below it, however deep, never following a link. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "init/file-op.h"
#include "lib/atomic-file.h"
#include "lib/errno-map.h"
#include "lib/open-beneath.h"

#define DEPTH_MAX 64   /* deeper ones are moved up first: each level is an open descriptor */
#define TRIES     1000 /* at a directory that fills up again while it is emptied */

struct removal {
	struct file_op *op;
	int top;        /* the directory that all of it is in */
	uint64_t moved; /* names taken up to it */
};

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int remove_name(struct removal *r, int dir, const char *name, int depth, struct err *e);

/* A level that is too deep becomes one below the top, where a later round finds it. */
static int take_up(struct removal *r, int dir, const char *name, struct err *e)
{
	char up[64];

	snprintf(up, sizeof(up), ATOMIC_FILE_PREFIX "removing-%d-%llu", (int)getpid(),
		 (unsigned long long)r->moved++);
	if (renameat(dir, name, r->top, up) < 0)
		return err_file(e, errno, "remove %.100s", name);
	return 0;
}

static int remove_contents(struct removal *r, int dir, int depth, struct err *e)
{
	DIR *d = fdopendir(dir); /* takes the descriptor */
	struct dirent *entry;
	int n = 0;

	if (!d) {
		close_fd(&dir);
		return err_file(e, errno, "read a directory");
	}
	if (depth == 1)
		r->top = dir;
	while (n == 0 && (entry = readdir(d)))
		if (!is_dot(entry->d_name))
			n = remove_name(r, dir, entry->d_name, depth, e);
	closedir(d);
	return n;
}

static int remove_directory(struct removal *r, int dir, const char *name, int depth, struct err *e)
{
	for (int i = 0; i < TRIES; i++) {
		int fd;

		if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
			r->op->done.count++;
			return 0;
		}
		if (errno != ENOTEMPTY && errno != EEXIST)
			return err_file(e, errno, "remove %.100s", name);
		if (depth == DEPTH_MAX)
			return take_up(r, dir, name, e);
		fd = dir_open_beneath(dir, name);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE) && depth > 1)
			return take_up(r, dir, name, e); /* fewer levels may be open here */
		if (fd < 0 && errno != ENOENT)
			return err_file(e, errno, "remove %.100s", name);
		if (fd >= 0 && remove_contents(r, fd, depth + 1, e) < 0)
			return -1;
	}
	return err_file(e, ENOTEMPTY, "remove %.100s: it fills up again", name);
}

static int remove_name(struct removal *r, int dir, const char *name, int depth, struct err *e)
{
	struct stat st;

	if (op_tick(r->op, e) < 0)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_file(e, errno, "remove %.100s", name);
	if (S_ISDIR(st.st_mode))
		return remove_directory(r, dir, name, depth, e);
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return err_file(e, errno, "remove %.100s", name);
	r->op->done.count++;
	return 0;
}

int files_remove(struct file_op *op, struct err *e)
{
	struct removal r = { .op = op, .top = -1 };
	cleanup(close_fd) int dir = -1;
	char name[256];
	struct stat st;
	int n;

	if (guest_parent(op->q.path, &dir, name) < 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_file(e, errno, "remove %.150s", op->q.path);
	if (op->q.flags & FILE_RECURSIVE)
		return remove_name(&r, dir, name, 0, e);
	n = unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	if (n < 0)
		return err_file(e, errno == EEXIST ? ENOTEMPTY : errno, "remove %.150s",
				op->q.path);
	op->done.count = 1;
	return 0;
}

/*
 * What is in a directory, and below it, in order: an entry comes before what is
 * below it, and names of one directory by their bytes. So a list can be cut
 * anywhere and go on behind a path, also one that is gone meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init/file-op.h"
#include "lib/errno-map.h"
#include "lib/open-beneath.h"
#include "lib/strv.h"

#define DEPTH_MAX 256 /* levels of a recursive list: each is an open descriptor */
#define LIMIT_MAX 10000

struct listing {
	struct file_op *op;
	uint32_t left; /* how many more fit */
	bool more;     /* there is at least one that did not fit */
	char path[FILE_PATH_SIZE];
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_sort(struct strv *names)
{
	if (names->len > 1)
		qsort(names->items, names->len, sizeof(names->items[0]), compare);
}

/* The smallest `keep` names stay. */
static void names_trim(struct strv *names, size_t keep)
{
	names_sort(names);
	while (names->len > keep) {
		names->len--;
		free(take_ptr(names->items[names->len]));
	}
}

/* Not more than can be told: a directory may have millions. */
static int read_names(struct listing *l, DIR *d, const char *from, struct strv *names,
		      struct err *e)
{
	size_t keep = (size_t)l->left + 2; /* with the one before, and one that does not fit */
	struct dirent *entry;

	while ((entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strcmp(entry->d_name, from) < 0)
			continue;
		strv_add(names, entry->d_name);
		if (names->len >= 2 * keep)
			names_trim(names, keep);
		if (op_tick(l->op, e) < 0)
			return -1;
	}
	names_trim(names, keep);
	return 0;
}

static int walk(struct listing *l, int dir, const char *after, int depth, struct err *e);

static bool is_directory(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int descend(struct listing *l, int dir, const char *name, const char *after, int depth,
		   struct err *e)
{
	int fd;

	if (!(l->op->q.flags & FILE_RECURSIVE) || l->more || !is_directory(dir, name))
		return 0;
	if (depth == DEPTH_MAX)
		return err_file(e, ENAMETOOLONG, "%.100s is more than %d levels deep", l->path,
				DEPTH_MAX);
	fd = dir_open_beneath(dir, name);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES))
		return 0; /* it was there a moment ago; or it may not be looked into (/proc) */
	if (fd < 0)
		return err_file(e, errno, "list %.150s", l->path);
	return walk(l, fd, after, depth + 1, e);
}

static int tell(struct listing *l, int dir, const char *name, struct err *e)
{
	if (l->left == 0) {
		l->more = true;
		return 0;
	}
	if (op_put_entry(l->op, dir, name, l->path, e) < 0)
		return e->reason && strcmp(e->reason, "no_such_file") == 0 ? 0 : -1;
	l->left--;
	return 0;
}

/* `after`: the rest of the path to go on behind, from this directory on; "" from the start. */
static int one(struct listing *l, int dir, const char *name, const char *after, int depth,
	       struct err *e)
{
	size_t len = strlen(l->path), first = strcspn(after, "/");
	bool seen = first > 0 && strlen(name) == first && strncmp(name, after, first) == 0;
	int n;

	if (len + strlen(name) + 2 > sizeof(l->path))
		return err_file(e, ENAMETOOLONG, "list %.100s/%.100s", l->path, name);
	snprintf(l->path + len, sizeof(l->path) - len, "%s%s", len > 1 ? "/" : "", name);
	n = seen ? 0 : tell(l, dir, name, e);
	if (n == 0)
		n = descend(l, dir, name, seen && after[first] ? after + first + 1 : "", depth, e);
	l->path[len] = '\0';
	return n;
}

static int walk(struct listing *l, int dir, const char *after, int depth, struct err *e)
{
	cleanup(strv_done) struct strv names = { 0 };
	char from[256];
	DIR *d = fdopendir(dir); /* takes the descriptor */
	int n;

	if (!d) {
		close_fd(&dir);
		return err_file(e, errno, "list %.150s", l->path);
	}
	snprintf(from, sizeof(from), "%.*s", (int)strcspn(after, "/"), after);
	n = read_names(l, d, from, &names, e);
	for (size_t i = 0; n == 0 && i < names.len && !l->more; i++)
		n = one(l, dir, names.items[i], after, depth, e);
	closedir(d);
	return n;
}

/* The path a list goes on behind, from the listed directory on. */
static const char *rest_of(const char *after, const char *path)
{
	size_t len = strlen(path);

	if (len == 1)
		return after + (after[0] == '/');
	return strncmp(after, path, len) == 0 && after[len] == '/' ? after + len + 1 : "";
}

int files_list(struct file_op *op, struct err *e)
{
	struct listing l = { .op = op, .left = op->q.limit };
	size_t len = strlen(op->q.path);
	int fd, n;

	if (l.left == 0 || l.left > LIMIT_MAX)
		l.left = LIMIT_MAX;
	while (len > 1 && op->q.path[len - 1] == '/')
		op->q.path[--len] = '\0';
	memcpy(l.path, op->q.path, len + 1);
	fd = guest_open(AT_FDCWD, op->q.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_file(e, errno, "list %.150s", op->q.path);
	n = walk(&l, fd, rest_of(op->q.to, l.path), 0, e);
	op->done.count = l.more;
	return n;
}

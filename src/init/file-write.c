/* New contents for a file, whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init/file-op.h"
#include "lib/atomic-file.h"
#include "lib/errno-map.h"

/* Where it goes: the directory, the name in it, and what has that name now. */
struct place {
	int dir;
	char name[256];
	bool there;
	struct stat st;
};

static int look(struct place *p, const char *path)
{
	size_t len = strlen(path);

	if (path[len - 1] == '/') {
		errno = EISDIR;
		return -1;
	}
	if (guest_parent(path, &p->dir, p->name) < 0)
		return -1;
	p->there = fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
	return !p->there && errno != ENOENT ? -1 : 0;
}

/* What a link leads to is replaced, not the link. */
static int find(struct place *p, const char *path)
{
	char real[PATH_MAX];

	if (look(p, path) < 0)
		return -1;
	if (p->there && S_ISLNK(p->st.st_mode)) {
		close_fd(&p->dir);
		p->dir = -1;
		if (!realpath(path, real) || look(p, real) < 0)
			return -1;
	}
	if (!p->there || S_ISREG(p->st.st_mode))
		return 0;
	errno = S_ISDIR(p->st.st_mode) ? EISDIR : S_ISLNK(p->st.st_mode) ? ELOOP
									 : ENXIO;
	return -1;
}

static int make_parents(const char *path)
{
	char parent[FILE_PATH_SIZE];
	const char *slash = strrchr(path, '/');
	bool made;

	if (!slash || slash == path)
		return 0;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	return guest_mkdirs(parent, 0755, &made);
}

static int take_contents(struct file_op *op, struct atomic_file *r, struct err *e)
{
	const uint8_t *bytes;
	ssize_t n;

	while ((n = op_data(op, &bytes, e)) > 0)
		if (atomic_file_write(r, bytes, (size_t)n) < 0)
			return err_file(e, errno, "write %.150s", op->q.path);
	return (int)n;
}

static int replace_it(struct file_op *op, struct place *p, struct err *e)
{
	cleanup(atomic_file_abort) struct atomic_file r = { .fd = -1 };
	mode_t mode = op->q.flags & FILE_HAS_MODE ? op->q.mode : 0644;

	if (atomic_file_begin(&r, p->dir, p->name) < 0) /* ENOENT: nothing can be made in /proc */
		return err_file(e, errno == ENOENT ? EACCES : errno, "write %.150s", op->q.path);
	if (take_contents(op, &r, e) < 0)
		return -1;
	if (p->there && op->q.flags & FILE_HAS_MODE)
		p->st.st_mode = mode;
	if (atomic_file_commit(&r, p->there ? &p->st : NULL, mode) < 0)
		return err_file(e, errno, "write %.150s", op->q.path);
	op->done.count = !p->there;
	return op_put_entry(op, p->dir, p->name, op->q.path, e);
}

int files_write(struct file_op *op, struct err *e)
{
	struct place p = { .dir = -1 };
	int n;

	if (op->q.flags & FILE_PARENTS && make_parents(op->q.path) < 0)
		return err_file(e, errno, "make the directories above %.150s", op->q.path);
	if (find(&p, op->q.path) < 0)
		n = err_file(e, errno, "write %.150s", op->q.path);
	else
		n = replace_it(op, &p, e);
	close_fd(&p.dir);
	return n;
}

#include "lib/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/str.h"

#define TREE_DEPTH_MAX 64

/* A file that is removed again unless the work on it was finished. */
struct tmpfile_at {
	int dirfd;
	char name[256];
};

static void tmpfile_remove(struct tmpfile_at *t)
{
	if (t->name[0])
		(void)unlinkat(t->dirfd, t->name, 0);
}

int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int replace(int dirfd, const char *name, const void *data, size_t len, bool sync,
		   struct err *e)
{
	cleanup(tmpfile_remove) struct tmpfile_at tmp = { .dirfd = dirfd };
	cleanup(close_fd) int fd = -1;
	int n;

	n = snprintf(tmp.name, sizeof(tmp.name), ".%s.new", name);
	if (n < 0 || (size_t)n >= sizeof(tmp.name)) {
		tmp.name[0] = '\0';
		return err_set(e, ERR_INVALID, "file name too long: %.40s...", name);
	}

	fd = openat(dirfd, tmp.name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return err_sys(e, errno, "create %s", tmp.name);
	if (write_all(fd, data, len) < 0)
		return err_sys(e, errno, "write %s", tmp.name);
	if (sync && fsync(fd) < 0)
		return err_sys(e, errno, "sync %s", tmp.name);
	if (renameat(dirfd, tmp.name, dirfd, name) < 0)
		return err_sys(e, errno, "rename %s to %s", tmp.name, name);
	tmp.name[0] = '\0'; /* it has its real name now: keep it */

	if (sync && fsync(dirfd) < 0)
		return err_sys(e, errno, "sync directory of %s", name);
	return 0;
}

int file_replace(int dirfd, const char *name, const void *data, size_t len, struct err *e)
{
	return replace(dirfd, name, data, len, true, e);
}

int file_replace_fast(int dirfd, const char *name, const void *data, size_t len, struct err *e)
{
	return replace(dirfd, name, data, len, false, e);
}

int file_poke(int dirfd, const char *name, const char *text, struct err *e)
{
	cleanup(close_fd) int fd = openat(dirfd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "open %s", name);
	if (write_all(fd, text, strlen(text)) < 0)
		return err_sys(e, errno, "write \"%.60s\" to %s", text, name);
	return 0;
}

int file_read(int dirfd, const char *name, struct buf *out, struct err *e)
{
	cleanup(close_fd) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	char chunk[4096];
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "open %s: %s", name, strerror(errno));
	if (fd < 0)
		return err_sys(e, errno, "open %s", name);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(out, chunk, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read %s", name);
	if (buf_overflowed(out))
		return err_set(e, ERR_TOO_LARGE, "%s is longer than %zu bytes", name, out->max);
	return 0;
}

int file_read_u64(int dirfd, const char *name, uint64_t *ret, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(64);

	if (file_read(dirfd, name, &text, e) < 0)
		return -1;
	while (text.len > 0 && text.data[text.len - 1] == '\n')
		text.data[--text.len] = '\0';
	return str_u64(buf_str(&text), ret, e) < 0 ? err_wrap(e, "%s", name) : 0;
}

int dir_open(int dirfd, const char *name, unsigned mode, int *ret, struct err *e)
{
	int fd;

	if (mkdirat(dirfd, name, mode) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make directory %s", name);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open directory %s", name);
	*ret = fd;
	return 0;
}

void dir_closep(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int remove_below(int dirfd, const char *name, int depth, struct err *e)
{
	cleanup(dir_closep) DIR *dir = NULL;
	struct dirent *entry;
	int fd;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return err_sys(e, errno, "remove %s", name);
	if (depth == TREE_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "remove %s: more than %d levels", name,
			       TREE_DEPTH_MAX);

	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return err_sys(e, errno, "open directory %s", name);
	while ((entry = readdir(dir)))
		if (!is_dot(entry->d_name) && remove_below(fd, entry->d_name, depth + 1, e) < 0)
			return -1;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		return err_sys(e, errno, "remove directory %s", name);
	return 0;
}

int file_remove_tree(int dirfd, const char *name, struct err *e)
{
	return remove_below(dirfd, name, 0, e);
}

#include "lib/atomic-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define TRIES 16

static void temp_name(char temp[32])
{
	uint64_t n = 0;

	(void)!getrandom(&n, sizeof(n), 0);
	snprintf(temp, 32, ATOMIC_FILE_PREFIX "%016llx", (unsigned long long)n);
}

static int open_named(struct atomic_file *r)
{
	for (int i = 0; i < TRIES; i++) {
		temp_name(r->temp);
		r->fd = openat(r->dir, r->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			       0600);
		if (r->fd >= 0 || errno != EEXIST)
			break;
	}
	if (r->fd < 0)
		r->temp[0] = '\0';
	return r->fd < 0 ? -1 : 0;
}

int atomic_file_begin(struct atomic_file *r, int dir, const char *name)
{
	*r = (struct atomic_file){ .fd = -1, .dir = dir };
	if (strlen(name) >= sizeof(r->name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(r->name, name, strlen(name) + 1);
	r->fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (r->fd >= 0)
		return 0;
	return open_named(r);
}

int atomic_file_write(struct atomic_file *r, const void *bytes, size_t len)
{
	for (const char *at = bytes; len > 0;) {
		ssize_t n = write(r->fd, at, len);

		if (n < 0 && errno != EINTR)
			return -1;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The kernel links what has no name only through /proc. */
static int link_as(const struct atomic_file *r, const char *name)
{
	char self[64];

	if (r->temp[0])
		return linkat(r->dir, r->temp, r->dir, name, 0);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", r->fd);
	return linkat(AT_FDCWD, self, r->dir, name, AT_SYMLINK_FOLLOW);
}

/* Give it a name that no reader opens. */
static int give_name(struct atomic_file *r)
{
	char temp[sizeof(r->temp)];

	for (int i = 0; i < TRIES; i++) {
		temp_name(temp);
		if (link_as(r, temp) == 0) {
			memcpy(r->temp, temp, sizeof(temp));
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return -1;
}

int atomic_file_commit(struct atomic_file *r, const struct stat *old, mode_t mode)
{
	/* Another owner clears some bits of the mode, so that comes first. */
	if (old && fchown(r->fd, old->st_uid, old->st_gid) < 0 && errno != EPERM)
		return -1;
	if (fchmod(r->fd, old ? old->st_mode & 07777 : mode) < 0)
		return -1;
	if (!old && link_as(r, r->name) == 0) { /* fails where a file is, or links are not known */
		atomic_file_abort(r);
		return 0;
	}
	if (!r->temp[0] && give_name(r) < 0)
		return -1;
	if (renameat(r->dir, r->temp, r->dir, r->name) < 0)
		return -1;
	r->temp[0] = '\0';
	atomic_file_abort(r);
	return 0;
}

void atomic_file_abort(struct atomic_file *r)
{
	close_fd(&r->fd);
	r->fd = -1;
	if (r->temp[0])
		(void)unlinkat(r->dir, r->temp, 0);
	r->temp[0] = '\0';
}

#include "lib/open-beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int dir_open_beneath(int dir, const char *name)
{
	struct stat seen, opened;
	int fd;

	if (fstatat(dir, name, &seen, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (!S_ISDIR(seen.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &opened) < 0 || opened.st_ino != seen.st_ino ||
	    opened.st_dev != seen.st_dev) {
		close_fd(&fd);
		errno = ENOTDIR;
		return -1;
	}
	return fd;
}

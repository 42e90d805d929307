#include "node/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum presence presence_at(int dirfd, const char *path)
{
	struct stat st;

	if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return PRESENCE_PRESENT;
	return errno == ENOENT ? PRESENCE_ABSENT : PRESENCE_UNKNOWN;
}

enum presence presence_sum(enum presence a, enum presence b)
{
	if (a == PRESENCE_PRESENT || b == PRESENCE_PRESENT)
		return PRESENCE_PRESENT;
	return a == PRESENCE_ABSENT && b == PRESENCE_ABSENT ? PRESENCE_ABSENT : PRESENCE_UNKNOWN;
}

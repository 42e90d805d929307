#include "image/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"

/* A link here would send the runtime's mounts and device nodes somewhere else. */
static int plain_directory(int root, const char *name, struct err *e)
{
	struct stat st;

	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	if (file_remove_tree(root, name, e) < 0)
		return -1;
	return mkdirat(root, name, 0755) < 0 ? err_sys(e, errno, "make /%s", name) : 0;
}

static int mount_points(int root, struct err *e)
{
	cleanup(close_fd) int dir = -1, init = -1;

	if (file_remove_tree(root, ".berth", e) < 0 || dir_open(root, ".berth", 0755, &dir, e) < 0)
		return -1;
	init = openat(dir, "init", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
	if (init < 0 || mkdirat(dir, "sock", 0700) < 0)
		return err_sys(e, errno, "make the mount points in /.berth");
	return 0;
}

int rootfs_finish(struct err *e)
{
	static const char *const plain[] = { "dev", "proc", "sys" };
	cleanup(close_fd) int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return err_sys(e, errno, "open the root directory");
	umask(0);
	for (size_t i = 0; i < array_len(plain); i++)
		if (plain_directory(root, plain[i], e) < 0)
			return -1;
	return mount_points(root, e);
}

#include "node/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

int idmap_mount(const char *source, const char *target, int userns, struct err *e)
{
	cleanup(close_fd) int tree = -1;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NODEV,
				   .userns_fd = (uint64_t)userns };

	tree = (int)syscall(SYS_open_tree, AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return err_sys(e, errno, "open_tree %s", source);
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, errno, "map the ids of %s", source);
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, errno, "mount on %s", target);
	return 0;
}

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

/*
 * Without it libc does not know "localhost". Only where nothing is there: what an
 * image says about itself stays. We are inside its root, so a link leads nowhere else.
 */
static int hosts_file(int root, struct err *e)
{
	static const char text[] = "127.0.0.1\tlocalhost\n::1\tlocalhost\n";
	cleanup(close_fd) int fd = -1;

	if (mkdirat(root, "etc", 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make /etc");
	fd = openat(root, "etc/hosts", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0) /* there already, or /etc is no directory: the image's own business */
		return 0;
	if (write_all(fd, text, sizeof(text) - 1) < 0)
		return err_sys(e, errno, "write /etc/hosts");
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
	return hosts_file(root, e) < 0 ? -1 : mount_points(root, e);
}

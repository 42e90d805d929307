#include "image/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/user.h"
#include "lib/file.h"
#include "lib/str.h"

#define ACCOUNTS_MAX (1UL << 20) /* bytes of /etc/passwd, or of /etc/group */

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

/* A file of the image; one that is not there has nothing in it. */
static int read_accounts(const char *name, struct buf *out, struct err *e)
{
	cleanup(close_fd) int fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char chunk[4096];
	struct stat st;
	ssize_t n;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open the image's %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "the image's %s is no file", name);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(out, chunk, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read the image's %s", name);
	if (buf_overflowed(out))
		return err_set(e, ERR_INVALID, "the image's %s has more than %lu bytes", name,
			       ACCOUNTS_MAX);
	return 0;
}

static struct bytes bytes_in(const struct buf *b)
{
	return (struct bytes){ (const uint8_t *)b->data, b->len };
}

static bool has_home(const struct strv *env)
{
	for (size_t i = 0; i < env->len; i++)
		if (str_starts(env->items[i], "HOME="))
			return true;
	return false;
}

int rootfs_user(struct image_config *c, struct err *e)
{
	cleanup(buf_done) struct buf passwd = buf_make(ACCOUNTS_MAX);
	cleanup(buf_done) struct buf group = buf_make(ACCOUNTS_MAX);
	char home[USER_HOME_SIZE + 8];
	struct image_user u;

	if (!c->user[0])
		return 0;
	if (read_accounts("/etc/passwd", &passwd, e) < 0 ||
	    read_accounts("/etc/group", &group, e) < 0 ||
	    image_user_find(c->user, bytes_in(&passwd), bytes_in(&group), &u, e) < 0)
		return -1;
	user_ids_text(&u.ids, c->user);
	snprintf(home, sizeof(home), "HOME=%s", u.home);
	if (!has_home(&c->env))
		strv_add(&c->env, home);
	return 0;
}

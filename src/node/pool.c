#include "node/pool.h"

#include <btrfsutil.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/proc.h"
#include "lib/str.h"
#include "node/loopdev.h"
#include "node/nested.h"
#include "node/presence.h"

#define QUOTA_SIMPLE 4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, newer than Debian 12's header */
#define SEARCH_BYTES 4096

static bool has_file_system(const char *device)
{
	static const char magic[8] = "_BHRfS_M";
	cleanup(close_fd) int fd = open(device, O_RDONLY | O_CLOEXEC);
	char found[8];

	return fd >= 0 && pread(fd, found, 8, 0x10040) == 8 && memcmp(found, magic, 8) == 0;
}

static int make_file_system(const char *device, struct err *e)
{
	const char *const argv[] = { "mkfs.btrfs", "--quiet", "--data", "single", "--metadata",
				     "single", "--label", "berth", device, NULL };
	struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = STDERR_FILENO };
	char how[64];
	struct proc p;
	int status;

	if (proc_start(&spec, &p, e) < 0)
		return -1;
	status = proc_wait(&p);
	if (status == 0)
		return 0;
	proc_status_text(status, how, sizeof(how));
	err_set(e, ERR_INTERNAL, "mkfs.btrfs on %s %s", device, how);
	return err_fix(e, "If the device holds something else, name another one as the pool.");
}

/* A new file gets its size and a file system; one with other content is refused. */
static int prepare_file(const char *path, uint64_t size, struct err *e)
{
	cleanup(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open pool %s", path);
	if (st.st_size == 0 && ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, errno, "give pool %s its size", path);
	if (st.st_size > 0 && !has_file_system(path))
		return err_set(e, ERR_CONFLICT, "%s is not empty and not a btrfs", path);
	if (has_file_system(path))
		return 0;
	if (make_file_system(path, e) == 0)
		return 0;
	(void)!ftruncate(fd, 0); /* empty again: the next start may try with another size */
	return -1;
}

static int mount_pool(const char *device, uint64_t size, const char *mountpoint, struct err *e)
{
	char loop[LOOPDEV_NAME_SIZE];
	cleanup(close_fd) int held = -1; /* keeps the loop device until it is mounted */
	struct stat st;

	if (stat(device, &st) < 0 || S_ISREG(st.st_mode)) {
		if (prepare_file(device, size, e) < 0 || loopdev_attach(device, loop, &held, e) < 0)
			return -1;
		device = loop;
	} else if (!has_file_system(device)) {
		err_set(e, ERR_CONFLICT, "%s holds no btrfs", device);
		return err_fix(e, "Make one first: mkfs.btrfs %s", device);
	}
	if (mkdir(mountpoint, 0711) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make %s", mountpoint);
	if (mount(device, mountpoint, "btrfs", MS_NOATIME | MS_NOSUID | MS_NODEV, NULL) < 0)
		return err_sys(e, errno, "mount %s on %s", device, mountpoint);
	return 0;
}

/* Simple quotas where the kernel has them (6.7), else the classic ones. */
static int switch_quotas_on(struct pool *p, struct err *e)
{
	struct btrfs_ioctl_quota_ctl_args simple = { .cmd = QUOTA_SIMPLE };
	struct btrfs_ioctl_quota_ctl_args classic = { .cmd = BTRFS_QUOTA_CTL_ENABLE };

	p->simple = ioctl(p->dirfd, BTRFS_IOC_QUOTA_CTL, &simple) == 0 || errno == EEXIST;
	if (p->simple)
		return 0;
	if (ioctl(p->dirfd, BTRFS_IOC_QUOTA_CTL, &classic) < 0 && errno != EEXIST)
		return err_sys(e, errno, "switch btrfs quotas on");
	return 0;
}

int pool_open(struct pool *p, const char *device, uint64_t size, const char *mountpoint,
	      struct err *e)
{
	*p = (struct pool){ .dirfd = -1, .images = -1, .sandboxes = -1 };
	if (!str_copy(p->mount, sizeof(p->mount), mountpoint))
		return err_set(e, ERR_INVALID, "path too long: %.60s...", mountpoint);
	if (mount_pool(device, size, mountpoint, e) < 0)
		return -1;
	p->dirfd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dirfd < 0)
		return err_sys(e, errno, "open %s", mountpoint);
	if (switch_quotas_on(p, e) < 0 || dir_open(p->dirfd, "images", 0711, &p->images, e) < 0 ||
	    dir_open(p->dirfd, "sandboxes", 0711, &p->sandboxes, e) < 0)
		return err_wrap(e, "pool %s", device);
	return 0;
}

void pool_close(struct pool *p)
{
	close_fd(&p->sandboxes);
	close_fd(&p->images);
	close_fd(&p->dirfd);
	*p = (struct pool){ .dirfd = -1, .images = -1, .sandboxes = -1 };
}

static int name_args(struct btrfs_ioctl_vol_args_v2 *args, const char *name, struct err *e)
{
	if (!str_copy(args->name, sizeof(args->name), name))
		return err_set(e, ERR_INVALID, "subvolume name too long: %.40s", name);
	return 0;
}

int pool_subvolume_make(int dirfd, const char *name, struct err *e)
{
	struct btrfs_ioctl_vol_args_v2 args = { 0 };

	if (name_args(&args, name, e) < 0)
		return -1;
	if (ioctl(dirfd, BTRFS_IOC_SUBVOL_CREATE_V2, &args) < 0)
		return err_sys(e, errno, "make subvolume %s", name);
	return 0;
}

int pool_subvolume_snapshot(int source, int dirfd, const char *name, struct err *e)
{
	struct btrfs_ioctl_vol_args_v2 args = { .fd = source };

	if (name_args(&args, name, e) < 0)
		return -1;
	if (ioctl(dirfd, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0)
		return err_sys(e, errno, "snapshot the image as %s", name);
	return 0;
}

static int destroy_at(int dirfd, const char *name, struct err *e)
{
	struct btrfs_ioctl_vol_args args = { 0 };

	if (!str_copy(args.name, sizeof(args.name), name)) {
		errno = ENAMETOOLONG;
		return err_set(e, ERR_INVALID, "subvolume name too long: %.40s", name);
	}
	if (ioctl(dirfd, BTRFS_IOC_SNAP_DESTROY, &args) == 0 || errno == ENOENT)
		return 0;
	return err_sys(e, errno, "remove subvolume %s", name);
}

int pool_subvolume_remove(int dirfd, const char *name, struct err *e)
{
	cleanup(close_fd) int fd = -1;

	if (destroy_at(dirfd, name, e) == 0)
		return 0;
	if (errno != ENOTEMPTY)
		return -1;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open subvolume %s", name);
	if (nested_remove(fd, e) < 0)
		return err_wrap(e, "subvolume %s", name);
	return destroy_at(dirfd, name, e);
}

static int subvolume_id(const struct pool *p, const char *sandbox, uint64_t *ret, struct err *e)
{
	cleanup(close_fd) int fd = openat(p->sandboxes, sandbox,
					  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum btrfs_util_error r;

	if (fd < 0)
		return err_sys(e, errno, "open subvolume %s", sandbox);
	r = btrfs_util_subvolume_id_fd(fd, ret);
	if (r != BTRFS_UTIL_OK)
		return err_set(e, ERR_INTERNAL, "subvolume %s: %s", sandbox,
			       btrfs_util_strerror(r));
	return 0;
}

/*
 * "Exclusive" is what the limit must mean: under simple quotas it equals what
 * the sandbox wrote, under classic ones it leaves out what it shares with its image.
 */
int pool_limit(const struct pool *p, const char *sandbox, uint64_t bytes, struct err *e)
{
	struct btrfs_ioctl_qgroup_limit_args args = {
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_EXCL, .max_excl = bytes },
	};

	if (subvolume_id(p, sandbox, (uint64_t *)&args.qgroupid, e) < 0)
		return -1;
	if (ioctl(p->dirfd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
		return err_sys(e, errno, "limit the disk of %s", sandbox);
	return 0;
}

uint64_t pool_used(const struct pool *p, const char *sandbox)
{
	/* The kernel writes what it finds behind the question. */
	uint64_t room[(sizeof(struct btrfs_ioctl_search_args_v2) + SEARCH_BYTES) / 8] = { 0 };
	struct btrfs_ioctl_search_args_v2 *search = (void *)room;
	struct btrfs_ioctl_search_key *key = &search->key;
	struct btrfs_ioctl_search_header head = { 0 };
	struct btrfs_qgroup_info_item info = { 0 };
	struct err e;
	uint64_t id = 0;

	if (subvolume_id(p, sandbox, &id, &e) < 0)
		return 0;
	search->buf_size = SEARCH_BYTES;
	key->tree_id = BTRFS_QUOTA_TREE_OBJECTID;
	key->min_type = key->max_type = BTRFS_QGROUP_INFO_KEY;
	key->min_offset = key->max_offset = id;
	key->max_transid = UINT64_MAX;
	key->nr_items = 1;
	if (ioctl(p->dirfd, BTRFS_IOC_TREE_SEARCH_V2, search) < 0 || key->nr_items == 0)
		return 0;
	memcpy(&head, search->buf, sizeof(head));
	if (head.len < sizeof(info))
		return 0;
	memcpy(&info, (char *)search->buf + sizeof(head), sizeof(info));
	return le64toh(info.excl);
}

enum presence pool_observe(const struct pool *p, const char *sandbox)
{
	return presence_at(p->sandboxes, sandbox);
}

void pool_space(const struct pool *p, uint64_t *total, uint64_t *available)
{
	struct statvfs fs;

	*total = *available = 0;
	if (fstatvfs(p->dirfd, &fs) < 0)
		return;
	*total = (uint64_t)fs.f_blocks * fs.f_frsize;
	*available = (uint64_t)fs.f_bavail * fs.f_frsize;
}

#include "node/nested.h"

#include <btrfsutil.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#define SEARCH_BYTES  4096
#define HANDLE_TYPE   0x4d /* FILEID_BTRFS_WITHOUT_PARENT */
#define ROOT_DIR      BTRFS_FIRST_FREE_OBJECTID
#define NAME_SIZE_MAX 256

/* What export of btrfs calls a file; a generation of 0 is any. */
struct handle {
	struct file_handle head;
	struct {
		uint64_t inode, subvolume;
		uint32_t generation;
	} __attribute__((packed)) body;
};

/* One that lies in a directory of another. */
struct nested {
	uint64_t in, dir; /* the subvolume, and the inode of the directory there */
	uint64_t id;
	char name[NAME_SIZE_MAX];
};

/* By number, so that no path is too long and nothing that a guest named is followed. */
static int open_inode(int pool, uint64_t subvolume, uint64_t inode, struct err *e)
{
	struct handle h = {
		.head = { .handle_bytes = sizeof(h.body), .handle_type = HANDLE_TYPE },
		.body = { .inode = inode, .subvolume = subvolume },
	};
	int fd = open_by_handle_at(pool, &h.head, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "open directory %llu of subvolume %llu",
			       (unsigned long long)inode, (unsigned long long)subvolume);
	return fd;
}

/* 1: the first one in that subvolume; 0: there is none. */
static int first_in(int pool, uint64_t subvolume, struct nested *ret, struct err *e)
{
	/* The kernel writes what it finds behind the question. */
	uint64_t room[(sizeof(struct btrfs_ioctl_search_args_v2) + SEARCH_BYTES) / 8] = { 0 };
	struct btrfs_ioctl_search_args_v2 *search = (void *)room;
	struct btrfs_ioctl_search_key *key = &search->key;
	struct btrfs_ioctl_search_header head;
	struct btrfs_root_ref ref;
	const char *found = (char *)search->buf;
	size_t len;

	search->buf_size = SEARCH_BYTES;
	key->tree_id = BTRFS_ROOT_TREE_OBJECTID;
	key->min_objectid = key->max_objectid = subvolume;
	key->min_type = key->max_type = BTRFS_ROOT_REF_KEY;
	key->max_offset = key->max_transid = UINT64_MAX;
	key->nr_items = 1;
	if (ioctl(pool, BTRFS_IOC_TREE_SEARCH_V2, search) < 0)
		return err_sys(e, errno, "look for nested subvolumes");
	if (key->nr_items == 0)
		return 0;
	memcpy(&head, found, sizeof(head));
	memcpy(&ref, found + sizeof(head), sizeof(ref));
	len = le16toh(ref.name_len);
	if (len >= sizeof(ret->name))
		return err_set(e, ERR_INTERNAL, "a nested subvolume has a name of %zu bytes", len);
	*ret = (struct nested){ .in = subvolume, .dir = le64toh(ref.dirid), .id = head.offset };
	memcpy(ret->name, found + sizeof(head) + sizeof(ref), len);
	return 1;
}

/* 1: one that has none inside itself. */
static int deepest_in(int pool, uint64_t subvolume, struct nested *ret, struct err *e)
{
	struct nested inner = { 0 };
	int n = first_in(pool, subvolume, ret, e);

	for (int more = n; more > 0; n = more < 0 ? -1 : n) {
		more = first_in(pool, ret->id, &inner, e);
		if (more > 0)
			*ret = inner;
	}
	return n;
}

static int make_writable(int pool, uint64_t subvolume, struct err *e)
{
	cleanup(close_fd) int fd = open_inode(pool, subvolume, ROOT_DIR, e);
	enum btrfs_util_error r;

	if (fd < 0)
		return -1;
	r = btrfs_util_set_subvolume_read_only_fd(fd, false);
	if (r != BTRFS_UTIL_OK)
		return err_set(e, ERR_INTERNAL, "make a nested subvolume writable: %s",
			       btrfs_util_strerror(r));
	return 0;
}

static int remove_one(int pool, const struct nested *n, struct err *e)
{
	cleanup(close_fd) int dir = open_inode(pool, n->in, n->dir, e);
	struct btrfs_ioctl_vol_args args = { 0 };

	if (dir < 0)
		return -1;
	memcpy(args.name, n->name, sizeof(n->name));
	if (ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args) == 0)
		return 0;
	/* Nothing can be taken out of a read-only one. */
	if (errno != EROFS)
		return err_sys(e, errno, "remove nested subvolume %llu", (unsigned long long)n->id);
	if (make_writable(pool, n->in, e) < 0)
		return -1;
	if (ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args) < 0)
		return err_sys(e, errno, "remove nested subvolume %llu", (unsigned long long)n->id);
	return 0;
}

int nested_remove(int subvolume, struct err *e)
{
	struct nested one = { 0 };
	uint64_t id;
	enum btrfs_util_error r = btrfs_util_subvolume_id_fd(subvolume, &id);
	int n;

	if (r != BTRFS_UTIL_OK)
		return err_set(e, ERR_INTERNAL, "which subvolume it is: %s",
			       btrfs_util_strerror(r));
	while ((n = deepest_in(subvolume, id, &one, e)) > 0)
		if (remove_one(subvolume, &one, e) < 0)
			return -1;
	return n;
}

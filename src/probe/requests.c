/* ioctl(): what a file system, a terminal or a socket would do for any caller. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/probe.h"

#define NAME      "berth-probe-subvolume"
#define NAME_1    8             /* where it stands in what is asked, */
#define NAME_2    56            /* and in the second version of it */
#define HIGH_BITS (0x5aL << 32) /* the kernel does not look at them */

/* A subvolume of our own in the root: it would have no quota, and would not be removed. */
static long try_subvolume(struct attempt *a)
{
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char args[4096] = "";
	long r;

	if (root < 0)
		return probe_say(a, PROBE_UNKNOWN, "could not be tried: %s", strerror(errno));
	memcpy(args, &root, sizeof(root)); /* what a snapshot is of */
	memcpy(args + a->probe->args[1], NAME, sizeof(NAME));
	r = syscall(SYS_ioctl, root, a->probe->args[0], args);
	if (r >= 0 && unlinkat(root, NAME, AT_REMOVEDIR) < 0)
		return probe_say(a, r, "there is one now, and it cannot be removed");
	return r;
}

/* clang-format off */
#define OWN_KERNEL "it is gVisor's kernel that answers, not the host's"
#define SUBVOLUME(name, what, request, at) \
	{ name, "disk without a quota, a sandbox that cannot be deleted", \
	  "ioctl(" what ") on /", try_subvolume, JUDGE_STRICT, OWN_KERNEL, .args = { request, at } }
/* On no descriptor: behind the filter there is another error, and no harm. */
#define REQUEST(name, stands, what, number) \
	{ name, stands, "ioctl(" what ")", .judge = JUDGE_STRICT, .gvisor = OWN_KERNEL, \
	  .call = SYS_ioctl, .args = { -1, number, 0 } }

const struct probe probe_requests[] = {
	SUBVOLUME("subvolume", "BTRFS_IOC_SUBVOL_CREATE", 0x5000940e, NAME_1),
	SUBVOLUME("subvolume-v2", "BTRFS_IOC_SUBVOL_CREATE_V2", 0x50009418, NAME_2),
	SUBVOLUME("subvolume-high-bits", "BTRFS_IOC_SUBVOL_CREATE", HIGH_BITS | 0x5000940e, NAME_1),
	SUBVOLUME("snapshot", "BTRFS_IOC_SNAP_CREATE", 0x50009401, NAME_1),
	SUBVOLUME("snapshot-v2", "BTRFS_IOC_SNAP_CREATE_V2", 0x50009417, NAME_2),
	REQUEST("subvolume-remove", "disks of others", "BTRFS_IOC_SNAP_DESTROY", 0x5000940f),
	REQUEST("subvolume-remove-v2", "disks of others, by number", "BTRFS_IOC_SNAP_DESTROY_V2",
	  0x5000943f),
	REQUEST("subvolume-flags", "a disk that stays read-only", "BTRFS_IOC_SUBVOL_SETFLAGS",
	  0x4008941a),
	REQUEST("subvolume-default", "the pool's next mount", "BTRFS_IOC_DEFAULT_SUBVOL",
	  0x40089413),
	REQUEST("subvolume-info", "the pool of all", "BTRFS_IOC_GET_SUBVOL_INFO", 0x81f8943c),
	REQUEST("quota-switch", "quotas of all", "BTRFS_IOC_QUOTA_CTL", 0xc0109428),
	REQUEST("quota-limit", "one's own limit", "BTRFS_IOC_QGROUP_LIMIT", 0x8030942b),
	REQUEST("quota-group", "one's own limit", "BTRFS_IOC_QGROUP_CREATE", 0x4010942a),
	REQUEST("pool-search", "names of others", "BTRFS_IOC_TREE_SEARCH_V2", 0xc0709411),
	REQUEST("pool-info", "the pool of all", "BTRFS_IOC_FS_INFO", 0x8400941f),
	REQUEST("pool-space", "the pool of all", "BTRFS_IOC_SPACE_INFO", 0xc0109414),
	REQUEST("pool-sync", "the disks of all", "BTRFS_IOC_SYNC", 0x9408),
	REQUEST("pool-defragment", "the disks of all", "BTRFS_IOC_DEFRAG_RANGE", 0x40309410),
	REQUEST("pool-freeze", "the disks of all", "FIFREEZE", 0xc0045877),
	REQUEST("pool-trim", "the disks of all", "FITRIM", 0xc0185879),
	REQUEST("file-flags", "files that nothing removes", "FS_IOC_SETFLAGS", 0x40086602),
	REQUEST("file-attributes", "quotas by project", "FS_IOC_FSSETXATTR", 0x401c5820),
	REQUEST("file-verity", "kernel surface", "FS_IOC_ENABLE_VERITY", 0x40806685),
	REQUEST("file-keys", "kernel surface, keys", "FS_IOC_ADD_ENCRYPTION_KEY", 0xc0506617),
	REQUEST("file-map", "where on the disk a file is", "FS_IOC_FIEMAP", 0xc020660b),
	REQUEST("namespace-owner", "other namespaces", "NS_GET_USERNS", 0xb701),
	REQUEST("terminal-input", "CVE-2017-5226: typing for another", "TIOCSTI", 0x5412),
	REQUEST("terminal-discipline", "kernel surface: CVE-2017-2636, CVE-2020-14416", "TIOCSETD",
	  0x5423),
	REQUEST("terminal-console", "CVE-2023-28100: the host's console", "TIOCLINUX", 0x541c),
	REQUEST("interface-flags", "other networks", "SIOCSIFFLAGS", 0x8914),
	REQUEST("interface-bridge", "kernel surface", "SIOCBRADDBR", 0x89a0),
	REQUEST("interface-tool", "hardware", "SIOCETHTOOL", 0x8946),
	{ NULL },
};
/* clang-format on */

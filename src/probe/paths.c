/* /proc, /sys and devices: what of the kernel can be written, read or made there. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe/probe.h"

#define OWN_FILE   "the file is of gVisor's own kernel"
#define WALK_FILES 64
#define TEXT(s)    ((long)(intptr_t)(s))

static const char *path_of(const struct attempt *a)
{
	return (const char *)(intptr_t)a->probe->args[0];
}

static long try_write(struct attempt *a)
{
	return open(path_of(a), O_WRONLY | O_CLOEXEC);
}

/* Bytes behind a mask: there are none. */
static long try_read(struct attempt *a)
{
	int fd = open(path_of(a), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char some[64];
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, some, sizeof(some));
	if (n == 0)
		return probe_say(a, probe_refused(ENODATA), "it is empty");
	return n > 0 ? 0 : -1;
}

static long try_list(struct attempt *a)
{
	DIR *dir = opendir(path_of(a));
	const struct dirent *d;

	if (!dir)
		return -1;
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.')
			return probe_say(a, 0, "%.60s is there", d->d_name);
	return probe_say(a, probe_refused(ENODATA), "it is empty");
}

/* An address other than zero at the start of a line. */
static long try_addresses(struct attempt *a)
{
	FILE *f = fopen(path_of(a), "re");
	char line[256];

	if (!f)
		return -1;
	for (int i = 0; i < 200 && fgets(line, sizeof(line), f); i++)
		if (isxdigit((unsigned char)line[0]) && strtoull(line, NULL, 16) != 0)
			return probe_say(a, 0, "addresses are shown: %.30s", line);
	return probe_say(a, probe_refused(EPERM), "no address is shown");
}

static long try_pagemap(struct attempt *a)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	off_t at = (off_t)((uintptr_t)&entry / 4096 * sizeof(entry));

	if (fd < 0 || pread(fd, &entry, sizeof(entry), at) != sizeof(entry))
		return fd < 0 ? -1 : probe_refused(EPERM);
	if ((entry & ((1ULL << 55) - 1)) == 0)
		return probe_say(a, probe_refused(EPERM), "no frame numbers are shown");
	return 0;
}

/* nftw() has no argument for its caller. */
static char walk_found[PROBE_TEXT_SIZE];

static int look_writable(const char *path, const struct stat *st, int type, struct FTW *at)
{
	int fd;

	(void)at;
	if (type != FTW_F || !S_ISREG(st->st_mode) || !(st->st_mode & 0222))
		return 0;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	close(fd);
	snprintf(walk_found, sizeof(walk_found), "%s", path);
	return 1;
}

static long try_walk(struct attempt *a)
{
	nftw(path_of(a), look_writable, WALK_FILES, FTW_PHYS | FTW_MOUNT);
	if (walk_found[0])
		return probe_say(a, 0, "%s can be written", walk_found);
	return probe_say(a, probe_refused(EROFS), "nothing in it can be written");
}

static long try_device(struct attempt *a)
{
	char path[64];
	const long *x = a->probe->args;
	mode_t type = x[2] ? S_IFBLK : S_IFCHR;

	snprintf(path, sizeof(path), "/tmp/device-%s", a->probe->name);
	(void)unlink(path);
	if (mknod(path, type | 0600, makedev((unsigned)x[0], (unsigned)x[1])) < 0)
		return -1;
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static int look_device(const char *path, const struct stat *st, int type, struct FTW *at)
{
	static const char *const fine[] = { "/dev/null", "/dev/zero", "/dev/full",
					    "/dev/random", "/dev/tty", "/dev/urandom",
					    "/dev/ptmx", "/dev/pts/ptmx" };

	(void)type, (void)at;
	if (!S_ISCHR(st->st_mode) && !S_ISBLK(st->st_mode))
		return 0;
	for (size_t i = 0; i < array_len(fine); i++)
		if (strcmp(path, fine[i]) == 0)
			return 0;
	snprintf(walk_found, sizeof(walk_found), "%s", path);
	return 1;
}

static long try_devices(struct attempt *a)
{
	nftw("/dev", look_device, WALK_FILES, FTW_PHYS);
	if (walk_found[0])
		return probe_say(a, a->target->gvisor ? probe_refused(EPERM) : 0, "%s is there%s",
				 walk_found, a->target->gvisor ? ", made by gVisor" : "");
	return probe_say(a, probe_refused(ENOENT), "only the harmless are there");
}

/*
 * The nodes in /dev. What is tried changes nothing where it gets through: the mode, the owner and
 * the access list that they have, and the time it is now.
 */
static int same_mode(const char *path, const struct stat *st)
{
	return chmod(path, st->st_mode & 07777);
}

static int same_owner(const char *path, const struct stat *st)
{
	return chown(path, st->st_uid, st->st_gid);
}

static int time_now(const char *path, const struct stat *st)
{
	(void)st;
	return utimensat(AT_FDCWD, path, NULL, 0);
}

static int same_list(const char *path, const struct stat *st)
{
	/* struct posix_acl_xattr_header, then owner, group and others, each with no id. */
	uint32_t list[7] = { 2 };

	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t tags[] = { 0x01, 0x04, 0x20 };

		list[1 + 2 * i] = tags[i] | (st->st_mode >> (6 - 3 * i) & 7) << 16;
		list[2 + 2 * i] = UINT32_MAX;
	}
	return setxattr(path, "system.posix_acl_access", list, sizeof(list), 0);
}

static long try_nodes(struct attempt *a)
{
	static int (*const ways[])(const char *path, const struct stat *st) = {
		same_mode, same_owner, time_now, same_list
	};
	static const char *const nodes[] = { "/dev/null", "/dev/zero", "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty" };
	struct stat st;
	int why = ENOENT;

	for (size_t i = 0; i < array_len(nodes); i++) {
		if (stat(nodes[i], &st) < 0)
			continue;
		if (ways[a->probe->args[0]](nodes[i], &st) == 0)
			return probe_say(a, 0, "%s was changed", nodes[i]);
		why = errno;
	}
	return probe_refused(why);
}

/* A mount that brings programs with rights, or devices, in. */
static long try_flags(struct attempt *a)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[1024], at[256], flags[256];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*s %*s %*s %255s %255s", at, flags) == 2 &&
		    strcmp(at, "/") != 0 && !strstr(flags, "nosuid") &&
		    strncmp(flags, "ro", 2) != 0)
			return probe_say(a, 0, "%s has %s", at, flags);
	return probe_say(a, probe_refused(EPERM), "all are nosuid or read-only");
}

/* Where the files of the host lie. */
static long try_host_paths(struct attempt *a)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[1024];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/var/lib/berth") || strstr(line, "pool.img") ||
		    strstr(line, "/alloc/"))
			return probe_say(a, 0, "%.150s", line);
	return probe_say(a, probe_refused(ENOENT), "no path of the host's is shown");
}

/* clang-format off */
#define WRITE(name, stands, path) \
	{ name, stands, "open " path " to write", try_write, JUDGE_ANY, OWN_FILE, \
	  .args = { TEXT(path) } }
#define READ(name, stands, path) \
	{ name, stands, "read " path, try_read, JUDGE_ANY, OWN_FILE, .args = { TEXT(path) } }
#define LIST(name, stands, path) \
	{ name, stands, "list " path, try_list, JUDGE_ANY, OWN_FILE, .args = { TEXT(path) } }
#define DEVICE(name, stands, path, major, minor, block) \
	{ name, stands, "make " path " and open it", try_device, .args = { major, minor, block } }
#define DEVICE_OF_GVISOR(name, stands, path, major, minor) \
	{ name, stands, "make " path " and open it", try_device, JUDGE_ANY, \
	  "the device is of gVisor's own kernel", .args = { major, minor } }
#define NODES(name, tries, way) \
	{ name, "devices that the host and others have, too", tries, try_nodes, JUDGE_ANY, \
	  "the device is of gVisor's own kernel", .args = { way } }

const struct probe probe_paths[] = {
	WRITE("core-pattern", "a program of the host's root: CVE-2025-31133, CVE-2025-52881",
	  "/proc/sys/kernel/core_pattern"),
	WRITE("modprobe-path", "a program of the host's root", "/proc/sys/kernel/modprobe"),
	WRITE("uevent-helper", "a program of the host's root", "/sys/kernel/uevent_helper"),
	WRITE("binfmt", "a program for others", "/proc/sys/fs/binfmt_misc/register"),
	WRITE("sysrq", "the host's life: CVE-2025-52881", "/proc/sysrq-trigger"),
	WRITE("panic-on-oom", "the host's life", "/proc/sys/vm/panic_on_oom"),
	WRITE("overcommit", "the host's memory", "/proc/sys/vm/overcommit_memory"),
	WRITE("file-max", "the host's files", "/proc/sys/fs/file-max"),
	WRITE("irq-affinity", "the host's CPUs", "/proc/irq/default_smp_affinity"),
	WRITE("power-state", "the host's life", "/sys/power/state"),
	WRITE("release-agent", "a program of the host's root: CVE-2022-0492",
	  "/sys/fs/cgroup/release_agent"),
	WRITE("cgroup-release-agent", "a program of the host's root: CVE-2022-0492",
	  "/sys/fs/cgroup/memory/release_agent"),
	WRITE("cgroup-limit", "one's own limit", "/sys/fs/cgroup/memory.max"),
	WRITE("cgroup-procs", "one's own limit", "/sys/fs/cgroup/cgroup.procs"),
	WRITE("pci-config", "hardware", "/proc/bus/pci/00/00.0"),
	WRITE("kmsg-write", "the host's log", "/dev/kmsg"),
	WRITE("console", "the host's console: CVE-2025-52565", "/dev/console"),
	READ("kcore", "the host's memory", "/proc/kcore"),
	READ("kmsg", "the host's log", "/proc/kmsg"),
	READ("keys", "the host's keys", "/proc/keys"),
	READ("timer-list", "kernel addresses, processes of others", "/proc/timer_list"),
	READ("sched-debug", "processes of others", "/proc/sched_debug"),
	READ("vmallocinfo", "kernel addresses", "/proc/vmallocinfo"),
	READ("slabinfo", "kernel heap", "/proc/slabinfo"),
	READ("kpagecount", "frames of others", "/proc/kpagecount"),
	READ("latency-stats", "processes of others", "/proc/latency_stats"),
	READ("interrupts", "keystrokes and loads of others", "/proc/interrupts"),
	READ("powercap", "CVE-2020-8694 (PLATYPUS)",
	     "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj"),
	LIST("firmware", "the host's hardware", "/sys/firmware"),
	LIST("kernel-objects", "kernel settings", "/sys/kernel"),
	LIST("debugfs", "kernel memory", "/sys/kernel/debug"),
	LIST("scsi", "the host's disks", "/proc/scsi"),
	LIST("filesystems", "the host's disks", "/proc/fs"),
	LIST("disks", "the host's disks", "/sys/block"),
	LIST("disk-class", "the host's disks", "/sys/class/block"),
	LIST("disk-numbers", "the host's disks", "/sys/dev/block"),
	LIST("loop-files", "the host's disks, and where its files lie",
	     "/sys/devices/virtual/block"),
	LIST("disk-caches", "the host's disks, and loads of others", "/sys/class/bdi"),
	LIST("disk-cache-objects", "the host's disks, and loads of others",
	     "/sys/devices/virtual/bdi"),
	LIST("pool-objects", "how much every other sandbox writes", "/sys/fs/btrfs"),
	LIST("disk-objects", "the host's disks, and loads of others", "/sys/fs/ext4"),
	LIST("acpi", "the host's hardware", "/proc/acpi"),
	{ "kallsyms", "kernel addresses", "read addresses from /proc/kallsyms", try_addresses,
	  JUDGE_ANY, OWN_FILE, .args = { TEXT("/proc/kallsyms") } },
	{ "iomem", "physical addresses", "read addresses from /proc/iomem", try_addresses,
	  JUDGE_ANY, OWN_FILE, .args = { TEXT("/proc/iomem") } },
	{ "pagemap", "physical addresses, for Rowhammer", "read frame numbers of our own pages",
	  try_pagemap, JUDGE_ANY, OWN_FILE },
	{ "proc-sys", "kernel settings", "open every file of /proc/sys to write", try_walk,
	  JUDGE_ANY, OWN_FILE, .args = { TEXT("/proc/sys") } },
	{ "sys", "kernel settings", "open every file of /sys to write", try_walk, JUDGE_ANY,
	  OWN_FILE, .args = { TEXT("/sys") } },
	DEVICE("mem-device", "the host's memory", "/dev/mem", 1, 1, 0),
	DEVICE("port-device", "hardware", "/dev/port", 1, 4, 0),
	DEVICE("kmsg-device", "the host's log", "/dev/kmsg", 1, 11, 0),
	DEVICE("loop-device", "the host's disks", "/dev/loop0", 7, 0, 1),
	DEVICE("loop-control", "the host's disks", "/dev/loop-control", 10, 237, 0),
	DEVICE("scsi-disk", "the host's disks", "/dev/sda", 8, 0, 1),
	DEVICE("virtual-disk", "the host's disks", "/dev/vda", 254, 0, 1),
	DEVICE("kvm-device", "CVE-2026-53359 (Januscape)", "/dev/kvm", 10, 232, 0),
	DEVICE_OF_GVISOR("tun-device", "other networks", "/dev/net/tun", 10, 200),
	DEVICE_OF_GVISOR("fuse-device", "filesystems of our own", "/dev/fuse", 10, 229),
	DEVICE("btrfs-control", "the host's disks", "/dev/btrfs-control", 10, 234, 0),
	DEVICE("vhost-device", "kernel surface", "/dev/vhost-net", 10, 238, 0),
	DEVICE("userfault-device", "kernel races made easy", "/dev/userfaultfd", 10, 126, 0),
	{ "devices", "devices that are there already", "look at all of /dev", try_devices },
	NODES("device-mode", "set the mode of the nodes in /dev", 0),
	NODES("device-owner", "set the owner of the nodes in /dev", 1),
	NODES("device-times", "set the times of the nodes in /dev", 2),
	NODES("device-list", "set the access list of the nodes in /dev", 3),
	{ "mount-flags", "setuid programs on mounts",
	  "look for a mount that is writable and not nosuid", try_flags,
	  JUDGE_ANY, "the mounts are of gVisor's own kernel" },
	{ "host-paths", "where the host keeps things", "read them from /proc/self/mountinfo",
	  try_host_paths },
	{ NULL },
};
/* clang-format on */

/* Mounts and namespaces: a new one of either brings capabilities back. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/probe.h"

#define CLONE_NEWTIME_ 0x80
#define OWN            "the namespace is of gVisor's own kernel"
#define OWN_MOUNT      "the mount is of gVisor's own kernel"
#define TEXT(s)        ((long)(intptr_t)(s))

static long try_clone_user(struct attempt *a)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	(void)a;
	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_clone3_user(struct attempt *a)
{
	unsigned long long args[11] = { CLONE_NEWUSER, 0, 0, 0, SIGCHLD };
	long pid = syscall(435, args, 64);

	(void)a;
	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_setns(struct attempt *a)
{
	int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);

	(void)a;
	return syscall(SYS_setns, fd, 0);
}

/* The release_agent escape begins with a cgroup mount of one's own. */
static long try_cgroup(struct attempt *a)
{
	(void)a;
	if (mount("cgroup", "/mnt", "cgroup", 0, "rdma") == 0 ||
	    mount("cgroup", "/mnt", "cgroup", 0, "memory") == 0)
		return 0;
	return mount("cgroup2", "/mnt", "cgroup2", 0, NULL);
}

/* Classic: a directory kept open across chroot() leads up and out. */
static long try_chroot(struct attempt *a)
{
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat before, after;

	mkdir("/tmp/jail", 0700);
	if (root < 0 || fstat(root, &before) < 0 || chroot("/tmp/jail") < 0 || fchdir(root) < 0)
		return -1;
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			return -1;
	if (stat(".", &after) < 0 || chroot(".") < 0)
		return -1;
	if (before.st_ino == after.st_ino && before.st_dev == after.st_dev &&
	    (!a->target->file[0] || access(a->target->file, F_OK) < 0))
		return probe_say(a, probe_refused(EXDEV), "it ends at the box's own root");
	return probe_say(a, 0, "another root is above ours");
}

/* clang-format off */
#define CALL(name, stands, tries, own, number, ...) \
	{ name, stands, tries, .judge = JUDGE_STRICT, .gvisor = own, .call = number, \
	  .args = { __VA_ARGS__ } }
#define MOUNT(name, stands, tries, ...) CALL(name, stands, tries, OWN_MOUNT, __VA_ARGS__)
#define UNSHARE(name, what) \
	CALL(name, "nested namespaces: CVE-2024-1086, CVE-2022-0185", "unshare(" #what ")", OWN, \
	     SYS_unshare, what)

const struct probe probe_mounts[] = {
	MOUNT("mount-tmpfs", "mounts", "mount a tmpfs", SYS_mount, TEXT("none"), TEXT("/mnt"),
	  TEXT("tmpfs"), 0, 0),
	MOUNT("mount-bind", "mounts", "bind /etc to /mnt", SYS_mount, TEXT("/etc"), TEXT("/mnt"), 0,
	  MS_BIND, 0),
	MOUNT("mount-proc", "a /proc without masks", "mount proc", SYS_mount, TEXT("proc"),
	  TEXT("/mnt"), TEXT("proc"), 0, 0),
	MOUNT("mount-sysfs", "a /sys to write", "mount sysfs", SYS_mount, TEXT("sysfs"),
	  TEXT("/mnt"), TEXT("sysfs"), 0, 0),
	MOUNT("mount-overlay", "setuid through overlays: CVE-2021-3493, CVE-2023-0386",
	  "mount overlay", SYS_mount, TEXT("overlay"), TEXT("/mnt"), TEXT("overlay"), 0,
	  TEXT("lowerdir=/etc,upperdir=/root,workdir=/tmp")),
	MOUNT("mount-debugfs", "kernel memory", "mount debugfs", SYS_mount, TEXT("debugfs"),
	  TEXT("/mnt"), TEXT("debugfs"), 0, 0),
	{ "mount-cgroup", "release_agent: CVE-2022-0492", "mount a cgroup hierarchy", try_cgroup,
	  JUDGE_ANY, OWN_MOUNT },
	MOUNT("remount-rw", "read-only paths made writable", "remount /proc/sys", SYS_mount, 0,
	  TEXT("/proc/sys"), 0, MS_REMOUNT | MS_BIND, 0),
	MOUNT("umount-mask", "masked paths uncovered", "umount /proc/sys", SYS_umount2,
	  TEXT("/proc/sys"), MNT_DETACH),
	MOUNT("pivot-root", "another root", "pivot_root()", SYS_pivot_root,
	  TEXT("/nothing"), TEXT("/nothing")),
	MOUNT("open-tree", "mounts by descriptor", "open_tree()", 428, -100, TEXT("/"), 1),
	MOUNT("move-mount", "mounts by descriptor", "move_mount()", 429, -1, TEXT(""), -100,
	  TEXT("/mnt"), 4),
	MOUNT("fsopen", "mounts by descriptor: CVE-2022-0185", "fsopen()", 430, TEXT("tmpfs"), 0),
	MOUNT("fsconfig", "mounts by descriptor: CVE-2022-0185", "fsconfig()", 431, -1, 0, 0, 0, 0),
	MOUNT("fsmount", "mounts by descriptor", "fsmount()", 432, -1, 0, 0),
	MOUNT("fspick", "mounts by descriptor", "fspick()", 433, -100, TEXT("/"), 0),
	MOUNT("mount-setattr", "mounts by descriptor", "mount_setattr()", 442, -1, TEXT(""), 0, 0,
	  0),
	MOUNT("statmount", "mounts of others", "statmount()", 457, 0, 0, 0, 0),
	MOUNT("listmount", "mounts of others", "listmount()", 458, 0, 0, 0, 0),
	UNSHARE("unshare-user", CLONE_NEWUSER),
	UNSHARE("unshare-mount", CLONE_NEWNS),
	UNSHARE("unshare-pid", CLONE_NEWPID),
	UNSHARE("unshare-net", CLONE_NEWNET),
	UNSHARE("unshare-ipc", CLONE_NEWIPC),
	UNSHARE("unshare-uts", CLONE_NEWUTS),
	UNSHARE("unshare-cgroup", CLONE_NEWCGROUP),
	UNSHARE("unshare-time", CLONE_NEWTIME_),
	{ "clone-user", "nested namespaces", "clone(CLONE_NEWUSER)", try_clone_user, JUDGE_STRICT,
	  OWN },
	{ "clone3-user", "nested namespaces", "clone3(CLONE_NEWUSER)", try_clone3_user,
	  JUDGE_STRICT, OWN },
	{ "setns", "other namespaces", "setns() to pid 1's mounts", try_setns, JUDGE_STRICT, OWN },
	{ "chroot", "chroot is no jail", "up and out with a directory kept open", try_chroot,
	  JUDGE_ANY, NULL },
	{ NULL },
};
/* clang-format on */

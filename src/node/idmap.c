#include "node/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"

struct helper {
	pid_t pid;
};

static void helper_done(struct helper *h)
{
	if (h->pid <= 0)
		return;
	kill(h->pid, SIGKILL);
	waitpid(h->pid, NULL, 0);
}

/* A process in a user namespace of its own, stopped, for as long as we need its namespace. */
static int helper_start(struct helper *h, struct err *e)
{
	pid_t parent = getpid();
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	h->pid = fork();
	if (h->pid == 0) {
		/* We may be killed while it waits: it must not wait for ever, with all we hold. */
		if (unshare(CLONE_NEWUSER) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
		    getppid() == parent)
			(void)!write(ready[1], "+", 1);
		else
			_exit(1);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (h->pid < 0 || read(ready[0], &byte, 1) != 1) {
		close(ready[0]);
		return err_set(e, ERR_UNSUPPORTED, "cannot make a user namespace");
	}
	close(ready[0]);
	return 0;
}

static int map_ids(const struct helper *h, uint32_t first, struct err *e)
{
	static const char *const files[] = { "uid_map", "gid_map" };
	char path[64], line[64];

	snprintf(line, sizeof(line), "0 %u %d", first, IDMAP_RANGE);
	for (size_t i = 0; i < array_len(files); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", h->pid, files[i]);
		if (file_poke(AT_FDCWD, path, line, e) < 0)
			return -1;
	}
	return 0;
}

int idmap_mount(const char *source, const char *target, uint32_t first, struct err *e)
{
	cleanup(helper_done) struct helper h = { 0 };
	cleanup(close_fd) int userns = -1, tree = -1;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NODEV };
	char path[64];

	if (helper_start(&h, e) < 0 || map_ids(&h, first, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", h.pid);
	userns = open(path, O_RDONLY | O_CLOEXEC);
	if (userns < 0)
		return err_sys(e, errno, "open %s", path);
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return err_sys(e, errno, "open_tree %s", source);
	attr.userns_fd = (uint64_t)userns;
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, errno, "map the ids of %s", source);
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, errno, "mount on %s", target);
	return 0;
}

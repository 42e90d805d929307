#include "image/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap)    (1U << (cap))
#define UNPACK_CAPS (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID))

static int keep_caps(uint32_t caps)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = caps, .permitted = caps } };

	return (int)syscall(SYS_capset, &head, data);
}

static int drop_bounding(void)
{
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return -1;
	return 0;
}

/* Not 0: for that a dump still goes to a core_pattern that is a pipe. */
static const struct rlimit no_core = { 1, 1 };

int confine_begin(struct err *e)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return err_sys(e, errno, "leave the host's namespaces");
	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || drop_bounding() < 0 ||
	    keep_caps(UNPACK_CAPS | BIT(CAP_SYS_CHROOT)) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, errno, "give up privileges");
	return 0;
}

int confine_root(const char *name, struct err *e)
{
	if (chdir(name) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return err_sys(e, errno, "make %s the root directory", name);
	return 0;
}

int confine_end(struct err *e)
{
	if (keep_caps(UNPACK_CAPS) < 0)
		return err_sys(e, errno, "give up privileges");
	return 0;
}

int confine_nobody(int dirfd)
{
	/* Cloned first: what a descriptor shows belongs to the namespace we leave. */
	int tree = open_tree(dirfd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 || unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    move_mount(tree, "", AT_FDCWD, CONFINE_HOME, MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    chdir(CONFINE_HOME) < 0)
		return -1;
	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(CONFINE_UID, CONFINE_UID, CONFINE_UID) < 0 ||
	    setresuid(CONFINE_UID, CONFINE_UID, CONFINE_UID) < 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

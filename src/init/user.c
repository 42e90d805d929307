#include "init/user.h"

#include <grp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/user-ids.h"

/* musl has no header for these; they are the kernel's, version 3. */
#define CAP_VERSION 0x20080522U
struct cap_head {
	uint32_t version;
	int pid;
};
struct cap_data {
	uint32_t effective, permitted, inheritable;
};

/* One process, one user: set before the first fork, and never again. */
static struct user_ids user;
static bool is_set;

int user_set(const char *ids, struct err *e)
{
	if (user_ids_parse(ids, &user, e) < 0)
		return -1;
	is_set = true;
	return 0;
}

/* The kernel takes all powers from an effective user that is no longer root. */
static int take_powers_back(void)
{
	struct cap_head head = { .version = CAP_VERSION };
	struct cap_data data[2] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted;
	return (int)syscall(SYS_capset, &head, data);
}

int user_drop_power(unsigned power)
{
	struct cap_head head = { .version = CAP_VERSION };
	struct cap_data data[2] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return -1;
	if (prctl(PR_CAPBSET_DROP, power, 0, 0, 0) < 0 &&
	    prctl(PR_CAPBSET_READ, power, 0, 0, 0) != 0)
		return -1;
	data[power / 32].effective &= ~(1U << power % 32);
	data[power / 32].permitted &= ~(1U << power % 32);
	return (int)syscall(SYS_capset, &head, data);
}

int user_make_as(void)
{
	if (!is_set)
		return 0;
	/* Real and saved ids stay root's: a command of the user cannot signal or trace us. */
	if (setresgid((gid_t)-1, user.gid, (gid_t)-1) < 0 ||
	    setresuid((uid_t)-1, user.uid, (uid_t)-1) < 0)
		return -1;
	return take_powers_back();
}

int user_become(void)
{
	gid_t groups[USER_GROUPS_MAX];

	if (!is_set)
		return 0;
	for (size_t i = 0; i < user.group_count; i++)
		groups[i] = user.groups[i];
	if (setgroups((int)user.group_count, groups) < 0 ||
	    setresgid(user.gid, user.gid, user.gid) < 0)
		return -1;
	return setresuid(user.uid, user.uid, user.uid);
}

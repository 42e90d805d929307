/*
 * gVisor: pid 1 keeps what each operation has started in cgroups of gVisor's own making.
 *
 * A guest's root that reaches a cgroup.procs moves its processes to where they are not looked
 * for. So none but pid 1 can: the mount is detached and is pid 1's working directory, which
 * is not shown of a process that is not dumpable. What pid 1 has open would be shown, by
 * /proc/1/fd: that is covered. No other process of ours opens anything there, since its own
 * descriptors cannot be covered.
 */
#pragma once

#include <sys/types.h>

#include "lib/err.h"

struct cgroup_id {
	uint32_t owner;  /* the operation; no two of a sandbox's life have the same */
	uint32_t number; /* among its own, from 1 on; 0: all of them */
};

/*
 * For pid 1, before it starts any process. Whether there are cgroups; if there are and they
 * cannot be hidden, it fails. The power to mount is gone afterwards.
 */
must_check int cgroups_hide(bool *ret, struct err *e);

must_check int cgroup_make(struct cgroup_id id);
must_check int cgroup_add(struct cgroup_id id, pid_t pid);

/* To each member, how many there are into *ret. -1: that could not be seen. */
must_check int cgroup_signal(struct cgroup_id id, int signum, uint32_t *ret);

/*
 * Kill the members of all that belong to no operation any more; they are stopped first, so that
 * none outruns it. Returns how many were seen, and one more if not all could be: reap and call
 * again until none are.
 */
must_check size_t cgroups_kill(bool (*has_owner)(const void *data, struct cgroup_id id),
			       const void *data);

/* Those that are not in use and have no members any more. */
void cgroups_sweep(bool (*in_use)(const void *data, struct cgroup_id id), const void *data);

/*
 * The cgroups of wrappers, each inside its sandbox's own and on one hierarchy only, where no
 * limit hangs on it. The guest has no cgroup mount: what berth-node has put into one stays in
 * it, with everything it starts. They go with their sandbox's own group; see node/cgroup.h.
 */
#pragma once

#include "node/cgroup.h"

#define GROUP_PREFIX "wr." /* no file of the kernel's in a cgroup begins so */

must_check int group_name_check(const char *name, struct err *e);

/* Every one there is in this sandbox. */
typedef void group_fn(void *arg, const char *name, enum presence process);
must_check int group_each(const struct cgroup_host *h, const char *sandbox, group_fn *fn,
			  void *arg, struct err *e);

enum presence group_observe(const struct cgroup_host *h, const char *sandbox, const char *name);

/*
 * Make it, and move one process of the sandbox there. `pid` is what its init calls it; which
 * of the host's that is, the kernel says.
 */
must_check int group_enter(const struct cgroup_host *h, const char *sandbox, const char *name,
			   uint32_t pid, struct err *e);

/* What the innermost namespace calls the process of this /proc/PID/status; and is it `pid`? */
must_check bool group_pid_read(const char *status, uint32_t *ret);
bool group_pid_is(const char *status, uint32_t pid);

/* Send SIGKILL to all of it. Repeat until group_observe() says absent. */
void group_kill(const struct cgroup_host *h, const char *sandbox, const char *name);

/* Those whose name begins so and that no process is in. */
must_check int group_remove(const struct cgroup_host *h, const char *sandbox, const char *prefix,
			    struct err *e);

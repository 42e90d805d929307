/*
 * The guard: a process that does nothing but freeze all sandboxes when the time
 * is over. berth-node does the same, but it may be stopped, hang or be dead just
 * then, and the fence must not depend on it. What it needs is one word of memory,
 * RUN/guard, which berth-node writes and the guard reads; it outlives berth-node
 * and serves the next one.
 */
#pragma once

#include "lib/err.h"
#include "node/cgroup.h"

struct freeze_watchdog {
	int fd; /* RUN/guard, or -1 */
	_Atomic uint64_t *until_ms;
	int home; /* the mount namespace it lives in: the host's own */
};

/* Before the mount namespace is left: the guard must not hold what is mounted in it. */
must_check int freeze_watchdog_open(struct freeze_watchdog *g, int run_fd, struct err *e);

/*
 * They may run until then (CLOCK_BOOTTIME); what has passed means now. A guard is
 * started if there is none.
 */
must_check int freeze_watchdog_set(struct freeze_watchdog *g, const struct cgroup_host *h,
				   uint64_t until_ms,
				   struct err *e);

/* nothing is to be guarded; returns when it is gone */
void freeze_watchdog_dismiss(struct freeze_watchdog *g);
void freeze_watchdog_close(struct freeze_watchdog *g); /* it goes on */

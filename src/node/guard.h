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

struct guard {
	int fd; /* RUN/guard, or -1 */
	_Atomic uint64_t *until_ms;
	int home; /* the mount namespace it lives in: the host's own */
};

/* Before the mount namespace is left: the guard must not hold what is mounted in it. */
must_check int guard_open(struct guard *g, int run_fd, struct err *e);

/*
 * They may run until then (CLOCK_BOOTTIME); what has passed means now. A guard is
 * started if there is none.
 */
must_check int guard_set(struct guard *g, const struct cgroup_host *h, uint64_t until_ms,
			 struct err *e);

void guard_dismiss(struct guard *g); /* nothing is to be guarded; returns when it is gone */
void guard_close(struct guard *g);   /* it goes on */

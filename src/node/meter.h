/*
 * What an allocation uses, and what it may use: the kernel's counters and
 * limits, of cgroups v1 and v2, and of the pool.
 *
 * A cgroup is removed when an allocation is stopped and started again; what was
 * counted in it goes into the allocation's record first, so that nothing is lost
 * and nothing counted twice.
 */
#pragma once

#include "node/allocation.h"
#include "node/cgroup.h"

/* What it has used since it was made, and what it holds now. */
void meter_read(const struct allocation *a, struct node_usage *ret);

/* The same, only what `connect` tells: cheaper. */
void meter_read_some(const struct allocation *a, struct node_usage *ret);

/*
 * The kernel killed some of what runs now, or ran last, for memory, and that was all of it: with
 * gVisor. A guest whose processes the host sees may live on, and end for another reason.
 */
bool meter_ended_by_memory(const struct allocation *a);

/* Its cgroup is about to be removed: into the record with it. */
must_check int meter_close(struct allocation *a, struct err *e);

/* CPU time of all sandboxes there were since the parent cgroup was made. */
uint64_t meter_host_cpu_us(const struct cgroup_host *h);

/*
 * Change the limits of one that runs. It waits for memory to be given back: call it
 * in a task. ERR_CONFLICT if it holds more than it may from now on.
 */
must_check int meter_limit(const struct allocation *a, const struct node_limits *to, struct err *e);

/*
 * All sandboxes of this host at once: held still, let go, killed, counted.
 *
 * They share one parent cgroup, and what is frozen is the parent: one write, and
 * whatever comes into it later is held still as well. The kernel keeps it so,
 * whether berth-node lives or not.
 */
#pragma once

#include "node/cgroup.h"

/* Which hierarchy does it; false: none here can. */
must_check bool freeze_tree(const struct cgroup_host *h, size_t *ret);

/* Begin to. Returns at once; freeze_is_done() tells when nothing moves any more. */
must_check int freeze_all(const struct cgroup_host *h, struct err *e);
must_check int thaw_all(const struct cgroup_host *h, struct err *e);

/* Unknown if the kernel cannot be asked. A parent that is not there holds nothing back: absent. */
enum presence freeze_is_done(const struct cgroup_host *h);

/* SIGKILL to every process of every sandbox, frozen or not; where a frozen one cannot
 * die (v1) they are thawed once all have been hit. */
void kill_all(const struct cgroup_host *h);

/* Whether any sandbox, recorded or not, has a process. */
enum presence anything_runs(const struct cgroup_host *h);

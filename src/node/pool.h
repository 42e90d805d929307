/*
 * The disk of all sandboxes: one btrfs, on a block device or in a file behind
 * a loop device, mounted in this process's private mount namespace only. When
 * the last process that uses it is gone, mount and loop device are gone too.
 *
 *   images/DIGEST/rootfs      a subvolume per image, content-addressed
 *   images/DIGEST/config      what the image says about environment and cwd
 *   images/.NAME.partial/     being unpacked; removed at the next start
 *   sandboxes/NAME            a snapshot of an image, one per allocation
 */
#pragma once

#include "lib/err.h"
#include "proto/node.h"

struct pool {
	int dirfd;        /* the root of the file system */
	int images;       /* images/ */
	int sandboxes;    /* sandboxes/ */
	bool simple;      /* simple quotas, not the slower classic ones */
	char mount[4096]; /* where, in our mount namespace */
};

/* Make the file and the file system if they are not there, mount, switch quotas on. */
must_check int pool_open(struct pool *p, const char *device, uint64_t size, const char *mountpoint,
			 struct err *e);
void pool_close(struct pool *p);

/* Subvolumes, below images/X or sandboxes/. These wait for the disk: call them in a task. */
must_check int pool_subvolume_make(int dirfd, const char *name, struct err *e);
must_check int pool_subvolume_snapshot(int source, int dirfd, const char *name, struct err *e);
/* Also if there are subvolumes inside it. One that is not there is removed. */
must_check int pool_subvolume_remove(int dirfd, const char *name, struct err *e);

/* At most that many bytes of its own in this subvolume. */
must_check int pool_limit(const struct pool *p, const char *sandbox, uint64_t bytes, struct err *e);

/* What the subvolume holds of its own. 0 if the kernel does not say. */
uint64_t pool_used(const struct pool *p, const char *sandbox);

enum presence pool_observe(const struct pool *p, const char *sandbox);

void pool_space(const struct pool *p, uint64_t *total, uint64_t *available);

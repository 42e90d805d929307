/* Giving things up, before a stranger's bytes are looked at. */
#pragma once

#include "lib/err.h"

/*
 * Of no account and no sandbox, and of no other program: `nobody` may be the user of berthd, and
 * 65533 that of berth-egress (`berth dev`), both of which berth-node knows.
 */
#define CONFINE_UID 65532

/* Own network (none), mounts, IPC and host name; only what unpacking needs, and chroot(). */
must_check int confine_begin(struct err *e);

/* Make `name` the root directory, for good or until the next one. */
must_check int confine_root(const char *name, struct err *e);

/* No chroot() any more either. */
must_check int confine_end(struct err *e);

/*
 * Become CONFINE_UID, with that directory as the only one it owns, at CONFINE_HOME.
 * Keeps the network. For the time between fork() and execve(): -1 with errno.
 */
#define CONFINE_HOME "/mnt"
must_check int confine_nobody(int dirfd);

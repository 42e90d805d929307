/*
 * Id-mapped mounts: a directory seen through a user namespace's ids, so that
 * files owned by 0 in the pool belong to the sandbox's own root, without a
 * chown pass and without unsharing the snapshot.
 */
#pragma once

#include "lib/err.h"

/*
 * Mount `source` on `target`, with the ids of `userns`. For a child on its way
 * to execve(): it must be in a mount namespace of its own.
 */
must_check int idmap_mount(const char *source, const char *target, int userns, struct err *e);

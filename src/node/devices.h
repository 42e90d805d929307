/*
 * The device nodes of a sandbox. An engine in a user namespace cannot make any: it binds those of
 * the /dev it sees, which would be the host's, one inode for all sandboxes and the host.
 */
#pragma once

#include "lib/err.h"

/*
 * In the engine's own mount namespace: nodes of this sandbox alone, on a tmpfs that is mounted
 * on `dir` and read-only for good, in the place of those in /dev. They end with the namespaces.
 */
must_check int devices_stage(const char *dir, struct err *e);

/*
 * Nodes in `dev` that belong to one of `count` ids from `first` on, as an engine of an earlier
 * version left them, are root's again with the mode all hosts have. Returns how many, and logs it.
 */
int devices_repair(const char *dev, uint64_t first, uint64_t count);

/*
 * An engine's program in memory, sealed, so that it can be executed from there.
 *
 * crun protects itself from the container it starts: unless it runs from a
 * sealed file it makes a read-only mount of itself in /tmp and executes that,
 * for every sandbox anew. Sealed once by us, it is as safe and starts once.
 */
#pragma once

#include <sys/stat.h>

#include "lib/base.h"

struct sealed_exe {
	int fd;         /* -1: none yet */
	struct stat of; /* what it is a copy of */
};

/*
 * A descriptor to execute, made again when the file has changed; -1 if there can
 * be none: then the program itself will do. Stays ours.
 */
int sealed_exe_of(struct sealed_exe *p, const char *path);

void sealed_exe_done(struct sealed_exe *p);

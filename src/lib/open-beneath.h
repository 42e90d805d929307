/*
 * One step down, into a directory and never through a link: what was looked at is what
 * is opened, also where a kernel forgets O_NOFOLLOW beside O_DIRECTORY (gVisor of 2022).
 */
#pragma once

#include "lib/base.h"

/* The descriptor, or -1 with errno; ENOTDIR for a link. */
must_check int dir_open_beneath(int dir, const char *name);

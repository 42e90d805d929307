/*
 * Subvolumes inside a subvolume. A guest cannot make any (see seccomp.c); if one
 * found a way, or did before that was so, its disk must go all the same.
 */
#pragma once

#include "lib/err.h"

/* Remove all that are below `subvolume`, at whatever depth, read-only or not. */
must_check int nested_remove(int subvolume, struct err *e);

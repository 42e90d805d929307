/* Whether a pool of this size has room where it is made. */
#pragma once

#include "lib/err.h"

/*
 * The pool is a file DIR/pool.img that grows as it is filled: one that is larger than what the
 * disk below it has free fails in the middle of a sandbox's write, not at its limit. ERR_LIMIT says
 * so, with the numbers. One that is there already is not looked at.
 */
must_check int pool_size_check(const char *dir, const char *size, struct err *e);

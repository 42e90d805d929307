/*
 * Named places between write, act and write, where a test can have a daemon
 * die as if by kill -9.
 *
 * In a build with -Dcrash=true, BERTH_CRASH_AT=name kills the process that
 * comes by, BERTH_CRASH_AT=name:3 the third time. In any other build a point is
 * nothing at all. Names are `room.what-was-just-done` and stand in the source as
 * literals: tests/crash finds them there.
 *
 * With BERTH_CRASH_DIR=dir many deaths need one start only:
 *
 *   dir/at    "name count who", read at every point; the process that dies by it
 *             renames it to dir/hit first, so that it kills once. `who` is a list of
 *             self, parent (of a child that works for a daemon) and pids
 *   dir/log   if it is there, every name that was passed is added, a line each
 */
#pragma once

#include "lib/base.h"

#ifdef BERTH_CRASH
void crash_point(const char *name);
#else
static inline void crash_point(const char *name)
{
	(void)name;
}
#endif

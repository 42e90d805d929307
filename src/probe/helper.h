/* What berth-probe does besides probing; see main.c. */
#pragma once

#include "lib/base.h"

int helper(int argc, char **argv); /* the exit status */
int shared_hold(const char *name); /* prints "PID COUNT why there are no more" */
int shared_one(const char *name);  /* prints "ok", or why not */

must_check int copy_self(const char *path);
must_check bool file_has(const char *path, const char *word); /* in its first 64 KiB */

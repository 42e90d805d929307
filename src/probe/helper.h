/* What berth-probe does besides probing; see main.c. */
#pragma once

#include "lib/base.h"

int helper(int argc, char **argv); /* the exit status */

must_check int copy_self(const char *path);
must_check bool file_has(const char *path, const char *word); /* in its first 64 KiB */

/* Where the other programs are: beside this one, or where PostgreSQL puts its own. */
#pragma once

#include <limits.h>

#include "lib/err.h"

/* "berthd", "berth-node", "berth-init", "berth-image" or "berth-probe". */
must_check int program_find(const char *name, char out[PATH_MAX], struct err *e);

/* "postgres", "initdb", ...: on PATH, or the newest below /usr/lib/postgresql. */
must_check int program_find_postgres(const char *name, char out[PATH_MAX], struct err *e);

/* On PATH; false if it is not there. */
bool program_on_path(const char *name, char out[PATH_MAX]);

/* The first line a program prints; false if it cannot be run. */
must_check bool program_first_line(const char *const *argv, char *out, size_t size);

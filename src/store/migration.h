/* The schema, step by step; the list itself is made by tools/gen-sql. */
#pragma once

#include "lib/base.h"

struct migration {
	unsigned number;  /* grows in the list, and may leave some out */
	const char *name; /* "0001-first" */
	const char *sql;
};

extern const struct migration migrations[];
extern const size_t migration_count;

/* The schema, step by step; the list itself is made by tools/gen-sql. */
#pragma once

#include "lib/base.h"

struct migration {
	const char *name; /* "0001-first": the number is its place in the list */
	const char *sql;
};

extern const struct migration migrations[];
extern const size_t migration_count;

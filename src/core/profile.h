/* Profiles: resource limits by name. What a create says itself goes before. */
#pragma once

#include "lib/err.h"

struct profile {
	const char *name;
	int64_t memory_mb, cpu_milli, pids, disk_mb;
	uint64_t wall_ms; /* how long it may be busy without a pause; 0: as long as it likes */
};

/* The profile of that name, or ERR_INVALID with those there are. */
must_check int profile_find(const char *name, const struct profile **ret, struct err *e);

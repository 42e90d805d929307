/*
 * Execs, shells and contexts whose process was killed before it saw the end of all they had
 * started: that nothing is left of them is not known. It becomes known when pid 1 has seen it,
 * and where pid 1 cannot see it (neither a subreaper nor cgroups), never.
 */
#pragma once

#include "lib/err.h"
#include "proto/exec.h"

#define UNSEEN_MAX 256

struct unseen {
	size_t count;
	bool more; /* than there is room for: any other may be one of them */
	char ids[UNSEEN_MAX][EXEC_ID_SIZE];
};

void unseen_add(struct unseen *u, const char *id);
bool unseen_has(const struct unseen *u, const char *id); /* "": is there any */
void unseen_clear(struct unseen *u);

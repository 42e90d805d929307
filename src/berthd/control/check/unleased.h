/* Wrappers that run and whose lease does not name them. */
#pragma once

#include "berthd/runtime/berthd.h"
#include "proto/exec.h"
#include "store/wrapper.h"

struct unleased {
	char exec[EXEC_ID_SIZE];
	struct wrapper lease; /* of its name; LEASE_NONE also if there is no record */
};

/*
 * On a worker: one of a sandbox that is ready. 1 with it, 0 if there is none. Those whose end
 * is owed are none: their record says so.
 */
must_check int check_unleased(struct berthd *b, struct store *s, const struct sandbox *sb,
			      struct unleased *ret, struct err *e);

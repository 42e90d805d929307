/*
 * Waiting for a sandbox that a change is at: being created, woken, or put to
 * sleep. If no change of this berthd is, and one could be, the create is taken up
 * again. Ends with the record in a state that stays by itself, or with ERR_BUSY
 * after ten seconds.
 */
#pragma once

#include "berthd/control/transition.h"

typedef void wait_stable_fn(void *data, const struct sandbox *sb, const struct err *why);

struct wait_stable {
	struct reactor *reactor;
	const char *request;               /* whose, for the logs */
	const char *sandbox;               /* id */
	const struct idempotency_use *use; /* where a failed create is stored; NULL: nowhere */
	wait_stable_fn *done;
	void *data;
};

/* `done` is called once, from the loop. */
void wait_stable_begin(const struct wait_stable *how);

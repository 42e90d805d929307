/*
 * A create that lost the change that was at it: its record says creating, and
 * nothing of this berthd is changing it. That happens when the database went away
 * between the two writes. A request that asks for the sandbox again goes on where
 * it was left, as reconciling does after a restart.
 */
#pragma once

#include "berthd/control/transition.h"

/* This berthd could, no change of it does, and no other berthd has for a while. */
bool resume_possible(struct reactor *r, const struct sandbox *sb);

/*
 * Look at it, then build it and write what came of it; `done` is called once,
 * whatever that was: read the record again. It is fenced by the record's version,
 * so that of many who try one does.
 */
struct resume {
	struct reactor *reactor;
	const char *request; /* whose, for the logs */
	const struct sandbox *sb;
	const struct idempotency_use *use; /* where a failure is stored */
	void (*done)(void *data);
	void *data;
};
void resume_create(const struct resume *how);

/*
 * A sandbox being deleted, attempt by attempt. core/stop decides when; this
 * writes the attempt down, asks berth-node, and writes down what it saw. What
 * counts is only the answer to the attempt the record names. Ends with the
 * tombstone in c->tomb, or with ERR_BUSY while absence is not proven; then
 * c->sb.stop says when it goes on.
 */
#pragma once

#include "berthd/control/transition.h"

/* The caller wants c->sb.id deleted: the first attempt, or that there is one already. */
void deletion_ask(struct transition *c, transition_fn *done);

/*
 * An operator wants c->sb.id gone, of which this host has c->sb.generation (0: nothing) and no
 * record tells: one is written, for c->sb.owner and with the reason, and deleted like any other.
 */
void deletion_abandon(struct transition *c, const char *reason, transition_fn *done);

/* The time has come for c->sb, as it was read: the next attempt, or the end of one. */
void deletion_go_on(struct transition *c, transition_fn *done);

/* No change is left that could tell how the attempt of c->sb, as it was read, went. */
void deletion_lost(struct transition *c, transition_fn *done);

/*
 * What a host does about the others: it takes over those whose lease and margin
 * are over, gives what they ran a new generation on hosts that live, and builds
 * what came to itself that way. Everybody may; the rows decide who does.
 */
#pragma once

#include "berthd/runtime/reactor.h"

struct takeover;

struct takeover *takeover_begin(struct reactor *r, unsigned divisor);
void takeover_end(struct takeover *t);

/* Now, on a database thread; our own lease must be good, and of this epoch. */
void takeover_look(struct takeover *t, uint64_t epoch);

/*
 * Whether this host has room for one more: what it has is measured, what it
 * promised is summed up with the record that is written. A host that cannot be
 * measured takes nothing, and nothing is destroyed to make room but what the
 * records have proven gone.
 */
#pragma once

#include "api/life/change.h"

typedef void room_fn(void *data, const struct placement_host *room, const struct err *why);

/* What the host has, a second old at most. `done` may be called from within. */
void room_measure(struct reactor *r, const char *request, room_fn *done, void *data);

/* Have leftovers looked for and removed, then measure again. */
void room_clear(struct reactor *r, const char *request, room_fn *done, void *data);

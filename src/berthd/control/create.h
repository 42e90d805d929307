/*
 * One create, from what is asked to a sandbox that is ready: measure the host, refuse what can
 * never fit, find or insert the record, build. A full host is cleared of leftovers once, then tried
 * again. Any protocol may call this; it fills in a transition (spec, identity, owner, id) and
 * renders what came of it.
 */
#pragma once

#include "berthd/control/transition.h"

/*
 * `done` is called once: with an error (c->full: this host has no capacity for it, and nothing was
 * written; c->used_before: its idempotency key was), or with c->found (c->sb was there already), or
 * with c->sb as it was made. Then c is the caller's to free.
 */
void control_create(struct transition *c, transition_fn *done);

/*
 * What sandboxes were refused: published on the bus and written down. The last thousand of a
 * sandbox are kept, and those longer than itself: see store/retention.h.
 */
#pragma once

#include "berthd/runtime/reactor.h"
#include "proto/egress.h"
#include "store/network.h"

struct refusals;

/* Whose the sandbox is; false: not known here. */
typedef bool refusals_owner_fn(struct berthd *b, const char *sandbox,
			       char owner[SANDBOX_OWNER_SIZE]);

struct refusals *refusals_new(struct reactor *r, refusals_owner_fn *owner_of);
void refusals_free(struct refusals *s);

/* From the first reactor. What comes faster than it can be written is counted, not kept. */
void refusals_take(struct refusals *s, const struct egress_event *ev);
void refusals_flush(struct refusals *s);

/* As the event and the list have it. */
void refusal_json(struct buf *out, const struct security_event *ev);

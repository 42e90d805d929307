/*
 * The last events of a loop, for a follower that lost its connection and comes back.
 *
 * An event's id is "RUN-NUMBER": which run of berthd told it, and the how manieth it was. All
 * loops number alike, so a follower may come back to another one.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define EVENT_RING_MAX 1024

struct event_kept {
	char *owner, *text; /* NULL: none was kept here yet */
};

struct event_ring {
	uint64_t last; /* number of the newest; 0: none came yet */
	struct event_kept kept[EVENT_RING_MAX];
};

struct event_id {
	uint64_t run, number;
};

/* ERR_INVALID: it is not "RUN-NUMBER". */
must_check int event_id_read(const char *text, struct event_id *ret, struct err *e);

void event_ring_done(struct event_ring *ring);
void event_ring_put(struct event_ring *ring, uint64_t number, const char *owner,
		    const struct buf *text);

/* NULL: it never was, or is no longer there. */
const struct event_kept *event_ring_get(const struct event_ring *ring, uint64_t number);

/* The first number behind `after` that is still there, or last + 1; `*gap`: some are missing. */
uint64_t event_ring_next(const struct event_ring *ring, uint64_t after, bool *gap);

/*
 * The last events of a loop, for a follower that lost its connection and comes back.
 *
 * An event's id is "RUN-NUMBER": which run of berthd told it, and the how manieth it was. All
 * loops number alike, so a follower may come back to another one.
 *
 * When it is full the oldest event of the owner with the most makes room: an owner to which
 * much happens pushes out its own, not those of others. Owners are told apart by a hash; two
 * with the same one share what either has, and may be told of a gap that is not theirs.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define EVENT_RING_MAX    1024
#define EVENT_RING_SHARES 256

struct event_kept {
	uint64_t number;
	char *owner, *text;
};

struct event_ring {
	uint64_t last; /* number of the newest; 0: none came yet */
	size_t count;
	struct event_kept kept[EVENT_RING_MAX]; /* the oldest first */
	uint32_t held[EVENT_RING_SHARES];       /* how many, by owner */
	uint64_t gone[EVENT_RING_SHARES];       /* the newest that made room; 0: none had to */
};

struct event_id {
	uint64_t run, number;
};

/* ERR_INVALID: it is not "RUN-NUMBER". */
must_check int event_id_read(const char *text, struct event_id *ret, struct err *e);

void event_ring_done(struct event_ring *ring);
void event_ring_put(struct event_ring *ring, uint64_t number, const char *owner,
		    const struct buf *text);

/* Where in `kept` the first behind this number is; `count`: none is. */
size_t event_ring_after(const struct event_ring *ring, uint64_t number);

/* Is one behind this number missing, of that owner or (NULL) of any? */
must_check bool event_ring_gap(const struct event_ring *ring, const char *owner,
			       uint64_t number);

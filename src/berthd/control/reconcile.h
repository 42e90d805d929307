/*
 * Records and facts, brought together: whenever berth-node is reached (after
 * either daemon was restarted), and for every record whose deadline passed.
 * Runs on the first reactor.
 */
#pragma once

#include "berthd/runtime/reactor.h"

struct reconcile;

struct reconcile *reconcile_new(struct reactor *r);
void reconcile_begin(struct reconcile *rc); /* from now on by itself, as said above */
void reconcile_end(struct reconcile *rc);

/* From any thread: compare everything once more, as after a restart. */
void reconcile_look(struct reconcile *rc);

/* Since berthd began: leftovers that were removed, and that were found and are still there. */
struct reconcile_counts {
	uint64_t cleaned, skipped;
};
struct reconcile_counts reconcile_counts(const struct reconcile *rc);

/* On the first reactor: when the last look at everything came to an end, by uv_now(). */
struct reconcile_sweeps {
	uint64_t every_ms, finished_ms; /* the latter when it began, before the first */
	uint64_t finished;              /* how many have */
	uint64_t skipped;               /* because the one before was still under way */
	int unreadable;                 /* records that the last look left out; -1: none yet */
	struct err unreadable_why;      /* of the first of them */
};
struct reconcile_sweeps reconcile_sweeps(const struct reconcile *rc);

bool reconcile_looks(const struct reconcile *rc); /* that is still to come, or under way */

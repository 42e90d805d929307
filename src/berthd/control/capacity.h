/*
 * Whether this host has room for one more: what it has is measured, what it
 * promised is summed up with the record that is written. A host that cannot be
 * measured takes nothing, and nothing is destroyed to make room but what the
 * records have proven gone.
 */
#pragma once

#include <pthread.h>

#include "berthd/control/reconcile.h"
#include "berthd/control/transition.h"
#include "core/placement.h"
#include "store/host.h"

/* What this host has, as berth-node measured it last. */
struct capacity {
	pthread_mutex_t lock;
	struct placement_host host;
	struct host_capacity capacity; /* all zero: never measured */
	uint64_t measured_ms;          /* 0: never */
	bool asking;
};

typedef void capacity_fn(void *data, const struct placement_host *room, const struct err *why);

void capacity_tick(struct reactor *r); /* measure: control/tick.h */

/*
 * What the host has, as measured last; if berth-node has not answered for a
 * while, a room of which nothing is known, which takes nothing. Waits only for
 * the first measure of all. `done` may be called from within.
 */
void capacity_measure(struct reactor *r, const char *request, capacity_fn *done, void *data);

/* The same, known or not, from any thread. */
void capacity_get(struct berthd *b, struct placement_host *ret);

/* Its disk is short, and a sandbox was deleted just before. From any thread. */
bool capacity_is_freeing(struct berthd *b);

/* The same as figures for people, from any thread; as it was measured last. */
void capacity_figures(struct berthd *b, struct host_capacity *ret);

/*
 * Have leftovers looked for and removed, and wait for the disk of what was just deleted where that
 * is short; then measure again. Before that is done `counts` says
 * how many were removed, and how many are still there.
 */
void capacity_clear(struct reactor *r, const char *request, struct reconcile_counts *counts,
		    capacity_fn *done, void *data);

/* How often what a host has may be promised: the settings, as the records take them. */
struct host_share capacity_share(const struct berthd *b);

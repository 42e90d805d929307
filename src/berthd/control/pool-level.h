/*
 * How full the disk pool of this host is. Below what the host keeps (core/placement.h) it takes
 * no new sandbox: that is an alert, `pool_low`, until there is room again.
 *
 * What a deleted sandbox held is free only when btrfs has cleaned up behind it, which it does
 * some time after it has written the pool out: 10 seconds and more. A host that is short and
 * has just deleted something writes it out at once, and a create waits for that.
 */
#pragma once

#include "berthd/runtime/worker.h"
#include "store/alert.h"

struct berthd;
struct reactor;

struct pool_level {
	struct job job;
	struct alert alert; /* what the job writes */
	bool writing;       /* the job is under way */
	bool raises;        /* it raises the alert, and does not end it */
	bool written;       /* the records say whether it is low: as in `low` */
	bool low;
	bool syncing;
};

void pool_level_tick(struct reactor *r); /* compare: control/tick.h */

/* berth-node wrote the pool out, and began it then (NODE_SYNC). */
void pool_level_synced(struct berthd *b, uint64_t at_ms);
/*
 * What was written before then is counted in what berth-node is asked from now on; 0: the last
 * time is over a minute ago, and btrfs itself has written out since.
 */
uint64_t pool_level_synced_at(const struct berthd *b);

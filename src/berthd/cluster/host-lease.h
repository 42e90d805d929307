/*
 * This host's lease: kept in the database, told to berth-node, and lost when it
 * must be. The decisions are core/host-lease's; this carries them out, on the
 * first reactor and with a database connection of its own, so that no queue of
 * requests ever stands between a host and its lease.
 *
 * It also looks after the others: whose lease and margin are over is taken over,
 * and what ran there begins anew on hosts that live.
 */
#pragma once

#include "berthd/runtime/reactor.h"
#include "core/host-lease.h"

struct lease_agent;

/* What follows from a good lease; all on the first reactor. */
struct host_lease_events {
	/* This host begins under a new epoch: what is here may have a record elsewhere by now. */
	void (*begun)(struct berthd *b);
	/* Now and then, while the lease of this epoch is good: look after other hosts. */
	void (*held)(struct berthd *b, uint64_t epoch);
};

/* NULL and no error: leases are off, and this host may always run what it has. */
must_check int lease_agent_begin(struct reactor *r, const struct host_lease_events *events,
				 struct lease_agent **ret, struct err *e);
void lease_agent_end(struct lease_agent *k); /* NULL is fine; then its reactor may be closed */

/* berth-node was reached: without leases it is told so, whatever it was told before. */
void lease_agent_node_up(struct reactor *r);

/* From any thread. May sandboxes run here now; ERR_BUSY says why not. NULL is fine. */
must_check int lease_agent_check(const struct lease_agent *k, struct err *e);

/* ERR_BUSY once the database has not answered for so long that all is frozen. */
must_check int lease_agent_cut_off(const struct lease_agent *k, struct err *e);
const char *lease_agent_word(const struct lease_agent *k); /* "live", "frozen", ..., "off" */
bool lease_agent_runs(const struct lease_agent *k);

/*
 * From any thread. A caller that means to start something remembers it when the wish
 * was written, and compares before each act: under another epoch it is not ours any more.
 */
uint64_t lease_agent_epoch(const struct lease_agent *k); /* 0 for NULL */

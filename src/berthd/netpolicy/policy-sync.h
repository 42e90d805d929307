/*
 * What berth-egress is told, and what it has confirmed.
 *
 * The rows say what a sandbox may reach. Here is remembered at which address each
 * sandbox of this host is, which version of its policy was told, and which is in
 * force: the one thing a status may call so. Told of a change, berth-egress is told
 * the row as it is then; it takes no older version. When it was away, or we were,
 * all of it is told again.
 *
 * One link, on the first reactor; the rest may be called from any thread.
 */
#pragma once

#include "berthd/netpolicy/questions.h"
#include "berthd/netpolicy/refusals.h"
#include "berthd/runtime/reactor.h"
#include "core/sandbox.h"
#include "store/network.h"

struct policy_sync;

struct egress_status {
	uint32_t address;  /* 0: it has none now */
	uint64_t in_force; /* the version; 0: none, nothing passes */
	char why[200];     /* why not */
	bool cut;          /* it has no link: whatever was confirmed, nothing passes */
	struct network_use use;
	bool reached; /* berth-egress answers */
};

struct policy_sync *policy_sync_begin(struct reactor *r, refusals_owner_fn *owner_of);
void policy_sync_end(struct policy_sync *k);

/* A sandbox runs at this address; or it does no more. */
void egress_put(struct policy_sync *k, const char *sandbox, uint64_t generation,
		uint32_t address, bool cut);
void egress_drop(struct policy_sync *k, const char *sandbox, uint64_t generation);

/* Tell its policy as it is; `done` comes on `from`, when it is confirmed or will not be. */
typedef void egress_told_fn(void *data);
void egress_tell(struct policy_sync *k, const char *sandbox, struct reactor *from,
		 egress_told_fn *done, void *data);

/*
 * What it has used by now, `number` left open, and `generation` (0) filled in if it is:
 * `done` comes on `from`, which is the caller's own, and soon: a berth-egress that is late
 * is not waited for. False: it cannot be asked, or nothing is in force there, and `done`
 * does not come.
 */
must_check bool egress_ask(struct policy_sync *k, struct egress_ask *ask, struct reactor *from,
			   egress_count_fn *done, void *data);

/* The rows were changed: look for those that are not in force, soon. */
void egress_look(struct policy_sync *k);

void egress_status(struct policy_sync *k, const char *sandbox, struct egress_status *ret);

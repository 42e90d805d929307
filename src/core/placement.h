/*
 * Where a new sandbox goes, and whether it may go there at all.
 *
 * A host is filled by reservations: what was promised to sandboxes that live,
 * or whose absence is not proven, whether they use it or not. A host takes a
 * sandbox if what is promised, what is kept back and what is asked for fit in
 * what it has. Of the hosts that would, two are drawn and the less loaded one
 * wins: nearly as even as the best one, without everybody running to it.
 */
#pragma once

#include "core/host-lease.h"
#include "core/limits.h"

enum resource {
	RESOURCE_MEMORY_MB,
	RESOURCE_DISK_MB,
	RESOURCE_CPU_MILLI,
	RESOURCE_PIDS,
	RESOURCE_COUNT
};

struct resources {
	uint64_t of[RESOURCE_COUNT];
};

struct placement_host {
	struct host_lease lease;
	struct resources total;
	struct resources reserve;  /* kept for the host itself */
	struct resources promised; /* the sum of its reservations */
	unsigned sandboxes;
	unsigned sandboxes_max;  /* 0: takes none */
	unsigned cpu_share;      /* how often a CPU may be promised; 0 is 1 */
	bool disk_known;         /* its disk was measured */
	uint64_t disk_free_mb;   /* measured, not reckoned */
	uint64_t disk_keep_mb;   /* so much of it is never given away; 0: LOW_DISK_MB */
	uint64_t memory_free_mb; /* measured with the disk */
	uint64_t memory_keep_mb; /* the same of it; 0: nothing */
	struct limits most;      /* of one sandbox, see limits_fit() */
};

/* Below so much free disk it takes nothing. */
uint64_t placement_disk_keep_mb(const struct placement_host *h);

/* ERR_BUSY names what is short and by how much, or why the host takes nothing. */
must_check int placement_admit(const struct placement_host *h, const struct resources *need,
			       struct err *e);

/*
 * When to ask a full host again, in seconds: when the soonest of what may end there comes due,
 * `soonest_ms` from now; NEVER: nothing does by itself.
 */
unsigned placement_retry_s(uint64_t soonest_ms);

/* How full the host is in what it has least of, in thousandths. */
unsigned placement_load(const struct placement_host *h);

/* The index of the chosen host; ERR_BUSY if none takes it. `random` are any two numbers. */
must_check int placement_choose(const struct placement_host *hosts, size_t n,
				const struct resources *need, const uint64_t random[2],
				size_t *ret, struct err *e);

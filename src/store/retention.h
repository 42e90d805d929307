/*
 * What is kept of the past, and for how long. Only what is over and proven is
 * removed: never anything of a sandbox that exists, nor the tombstones of a host
 * that was lost or removed, which may come back with what was never seen gone.
 */
#pragma once

#include "store/store.h"

enum retention {
	RETENTION_USAGE,
	RETENTION_NETWORK, /* counts of what was sent; not before the usage they are told with */
	RETENTION_EVENTS,
	RETENTION_ALERTS,   /* that have ended */
	RETENTION_SECURITY, /* refusals of sandboxes that are gone */
	RETENTION_INCIDENTS,
	RETENTION_IDEMPOTENCY,
	RETENTION_SESSIONS,
	RETENTION_CAPS,
	RETENTION_TOMBSTONES,
	RETENTION_COUNT
};

#define STORE_RETENTION_BATCH 500 /* rows of each table, at once */

struct retention_ages {
	uint64_t ms[RETENTION_COUNT]; /* 0: kept for ever */
};

/*
 * One batch of each table, unless another host is at it. `more`: one was full.
 * How many rows were removed is added to `removed`.
 */
must_check int store_retention_run(struct store *s, const struct retention_ages *ages,
				   uint64_t *removed, bool *more, struct err *e);

/* What happened to a sandbox: one entry for every version of its record, kept for ever. */
#pragma once

#include "core/sandbox.h"
#include "store/store.h"

#define STORE_EVENTS_MAX 1000 /* of one call */

struct sandbox_happening {
	uint64_t seq;
	uint64_t at_ms;
	char event[32];
	char from_state[16], to_state[16];
	char reason[SANDBOX_REASON_SIZE];
	uint64_t attempt; /* whose step it was; 0: none */
};
typedef void sandbox_happening_fn(const struct sandbox_happening *h, void *arg);

/* In order, those behind `after`. Whose sandbox it is was asked before. */
must_check int store_sandbox_events(struct store *s, const char *id, uint64_t after,
				    sandbox_happening_fn *on_row, void *arg, struct err *e);

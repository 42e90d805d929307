/*
 * What sandboxes used, a row for each allocation they had, kept when they are gone.
 * Counters only grow: to write the same look twice, or an older one later, changes
 * nothing but the average.
 */
#pragma once

#include "core/sandbox.h"
#include "store/store.h"

struct usage_look {
	char sandbox[SANDBOX_ID_SIZE];
	uint64_t since_ms; /* when the allocation was made */
	uint64_t cpu_us;
	uint64_t memory_peak_bytes;
	uint64_t memory_sum_mb, memory_looks; /* since the last one that was written */
	uint64_t disk_bytes;
	uint64_t pids_peak;
	uint64_t oom_kills;
};

/* Those whose record is there; of others what was written before stays. */
must_check int store_usage_put(struct store *s, const struct usage_look *looks, size_t n,
			       struct err *e);

/* Of one sandbox: all its allocations together. */
struct usage {
	char sandbox[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	char host[SANDBOX_HOST_SIZE]; /* the last one */
	char profile[POLICY_WORD_SIZE];
	bool gone;
	uint64_t since_ms, seen_ms;
	uint64_t cpu_us;
	uint64_t memory_peak_bytes, memory_average_bytes;
	uint64_t disk_peak_bytes, pids_peak, oom_kills;
	uint64_t connections, requests, bytes_out;
};
must_check int store_usage_get(struct store *s, const char *owner, const char *sandbox,
			       struct usage *ret, struct err *e);

/* In order of sandbox, those behind `after`, at most `limit`. */
struct usage_page {
	const char *owner; /* NULL: everybody's */
	const char *after;
	uint32_t limit;
};
typedef void usage_fn(const struct usage *u, void *arg);
/* Damaged rows are left out: how many, and `e` names the first. */
must_check int store_usage_list(struct store *s, const struct usage_page *page, usage_fn *on_row,
				void *arg, struct err *e);

struct usage_totals {
	uint64_t sandboxes, cpu_us;
	uint64_t connections, requests, bytes_out;
};
must_check int store_usage_totals(struct store *s, const char *owner, struct usage_totals *ret,
				  struct err *e);

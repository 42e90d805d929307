/* What a command used, as its journal keeps it; exec/usage.h finds it out. */
#pragma once

#include "core/limits.h"
#include "lib/buf.h"
#include "proto/reader.h"

/* Counted before it began. */
struct exec_before {
	uint64_t cpu_us, pids_refused, oom_kills;
};

struct exec_usage {
	bool known; /* the host was asked, and knew */
	bool alone; /* no other command and no code ran in the sandbox meanwhile */
	uint64_t cpu_us;
	uint64_t memory_bytes, memory_peak_bytes, disk_bytes, pids_peak;
	uint64_t disk_at_ms; /* what was written before is in disk_bytes; 0: not known when */
	bool counted;        /* berth-egress was asked for `requests` before it and after it */
	uint64_t requests;
	bool hit; /* a limit was, this one: */
	enum limit limit;
	uint64_t value, peak; /* in the limit's own unit */
};

void exec_usage_encode(struct buf *out, const struct exec_usage *u);
struct exec_usage exec_usage_read(struct reader *r);

/* Apart, because they came later. Nothing there is zeros, and not known. */
void exec_requests_encode(struct buf *out, const struct exec_usage *u);
void exec_requests_read(struct reader *r, struct exec_usage *u);
void exec_disk_at_encode(struct buf *out, const struct exec_usage *u);
void exec_disk_at_read(struct reader *r, struct exec_usage *u);

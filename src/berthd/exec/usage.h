/*
 * What a command used and which limit it met, as the host saw it. The host counts
 * a sandbox, not a command: what ran beside it is in the numbers, and they say so
 * of other commands and of code in contexts. What an earlier command left running
 * is in them, too, and is not seen.
 *
 * The kernel holds memory, processes, disk and files. Time it only counts: a command
 * that runs too long is ended by init, and one that computes too much by us, who
 * look when it can have done so at the earliest.
 */
#pragma once

#include "core/limits.h"
#include "lib/buf.h"
#include "proto/exec.h"
#include "proto/node.h"
#include "proto/reader.h"

struct exec;

/* Counted before it began. */
struct exec_before {
	uint64_t cpu_us, pids_refused, oom_kills;
};

struct exec_use {
	bool known; /* the host was asked, and knew */
	bool alone; /* no other command and no code ran in the sandbox meanwhile */
	uint64_t cpu_us;
	uint64_t memory_bytes, memory_peak_bytes, disk_bytes, pids_peak;
	bool hit; /* a limit was, this one: */
	enum limit limit;
	uint64_t value, peak; /* in the limit's own unit */
};
#define EXEC_USE_SIZE 60 /* bytes, encoded */

void exec_use_encode(struct buf *out, const struct exec_use *u);
struct exec_use exec_use_read(struct reader *r);

/* The members `usage` and `limit`. */
void exec_use_json(struct buf *out, const struct exec_use *u);

/* Before it is sent: it may not run longer than its sandbox's commands may. */
void exec_use_begin(struct exec *x, const struct node_usage *before);

/* OOM kills of the sandbox since it began. */
uint64_t exec_use_oom_kills(const struct exec *x, const struct node_usage *now);

/* It runs: look after its CPU time, if that has a limit. */
void exec_use_watch(struct exec *x);

/* How it ended is known; what had it used by then? */
void exec_use_end(struct exec *x, const struct node_usage *after);

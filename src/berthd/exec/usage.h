/*
 * What a command used and which limit it met, as the host saw it. The host counts
 * a sandbox, not a command: what ran beside it is in the numbers, and they say so
 * of other commands and of code in contexts. What an earlier command left running
 * is in them, too, and is not seen. So it is with the requests that berth-egress counts.
 *
 * The kernel holds memory, processes, disk and files. Time it only counts: a command
 * that runs too long is ended by init, and one that computes too much by us, who
 * look when it can have done so at the earliest.
 */
#pragma once

#include "berthd/journal/exec-usage.h"
#include "lib/buf.h"
#include "proto/node.h"

struct exec;

/* The members `usage` and `limit`. */
void exec_usage_json(struct buf *out, const struct exec_usage *u);

/* Before it is sent: it may not run longer than its sandbox's commands may. */
void exec_usage_begin(struct exec *x, const struct node_usage *before);

/* OOM kills of the sandbox since it began. */
uint64_t exec_usage_oom_kills(const struct exec *x, const struct node_usage *now);

/* It runs: look after its CPU time, if that has a limit. */
void exec_usage_watch(struct exec *x);

/* How it ended is known; what had it used by then? */
void exec_usage_end(struct exec *x, const struct node_usage *after);

/* Behind that: the requests of its sandbox in between, if both counts are of one counter. */
void exec_usage_requests(struct exec *x);

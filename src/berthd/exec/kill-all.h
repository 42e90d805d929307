/*
 * Commands of a sandbox ended together, with what they left running: one exec, or all in a scope.
 * Signals that are delivered, and ends that have been seen.
 */
#pragma once

#include "berthd/exec/kill.h"
#include "berthd/runtime/caller.h"

enum kill_scope {
	KILL_SCOPE_ALL, /* and what ended commands left running */
	KILL_SCOPE_BACKGROUND,
	KILL_SCOPE_SHELL, /* of this name */
	KILL_SCOPE_GROUP, /* of this name */
	KILL_SCOPE_COUNT
};

/* What is pointed at must last until done(). */
struct kill_all {
	struct caller by;
	const char *sandbox;
	struct kill_spec spec;
	struct journal *one; /* NULL: all in the scope */
	enum kill_scope scope;
	const char *name;
};

struct kill_result {
	size_t killed;
	uint64_t leftovers; /* processes of commands that had ended */
};

/* What failed may have been done all the same, or in part. */
typedef void (*kill_all_fn)(void *data, const struct kill_result *result, const struct err *why);

size_t kill_all_count(const struct kill_all *a); /* how many run in the scope now */

/* `done` is called once, maybe before this returns: make it the last thing you do. */
void kill_all_begin(const struct kill_all *a, kill_all_fn done, void *data);

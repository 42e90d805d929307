/*
 * What a wrapper and its tools are doing: their processes, as berth-node sees them, or where the
 * host sees none (gVisor) as the engine does. Nothing in the sandbox is asked, so it answers
 * while all of that hangs.
 */
#pragma once

#include "berthd/runtime/caller.h"
#include "core/wrapper.h"
#include "proto/node.h"

/*
 * By the engine: those that descend from the wrapper's first process, with the names they have
 * given themselves and without their state.
 */
struct wrapper_processes {
	char exec[WRAPPER_EXEC_SIZE]; /* empty: no instance runs */
	bool by_engine;
	bool truncated; /* there are more */
	size_t count;
	struct node_process items[NODE_PROCESSES_MAX];
};

/* The list lives until the callback returns; with `why` it is empty. */
typedef void wrapper_processes_fn(void *data, const struct wrapper_processes *list,
				  const struct err *why);
void wrapper_processes_look(const struct caller *by, const char *sandbox, const char *name,
			    wrapper_processes_fn *done, void *data);

/* The processes of a guest, from what the kernel or an engine says of them in words. */
#pragma once

#include "node/cgroup.h"
#include "node/runtime.h"
#include "proto/node.h"

/* In memory that the child that looks shares with its parent, which reads it when that ended. */
struct process_list {
	uint32_t total; /* also those that found no place */
	uint32_t count;
	struct node_process items[NODE_PROCESSES_MAX];
};

/* Where to look. */
struct process_place {
	const struct cgroup_host *host;
	const char *sandbox, *group; /* of an engine that shows its guests */
	const struct runtime *engine;
	struct runtime_paths paths; /* of one that does not, with: */
	pid_t pid;                  /* its own process */
};

/*
 * In a child: to read the words of a process takes that process's memory, and a guest can make
 * this last. All of them are in the list before the words of the first are read.
 */
must_check int process_list_read(const struct process_place *at, struct process_list *ret,
				 struct err *e);

/* From the text of /proc/PID/status; `host_parent` as the host counts. False: it is none. */
must_check bool process_status_read(const char *text, struct node_process *ret,
				    uint32_t *host_parent);

/* A line of `runsc ps`; false: it is none of a process. Its name is the guest's choice. */
must_check bool process_row_read(const char *line, struct node_process *ret);

/* What stands in /proc/PID/cmdline, as one line; nothing changes if there is nothing. */
void process_words(const char *data, size_t len, char out[NODE_COMMAND_SIZE]);

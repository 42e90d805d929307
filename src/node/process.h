/* The processes of an allocation: found, watched, and what the engine said when it failed. */
#pragma once

#include "node/allocation.h"

struct process_paths {
	struct runtime_paths runtime;
	char root[2048], bundle[2048], pidfile[2048], log[2048];
};
void process_paths(const struct allocation *a, struct process_paths *p);

/* Read the engine's pid file, and believe it only if the process is in our cgroup. */
must_check int process_find(struct allocation *a, struct err *e);

/* Did it end, that was found? What to say of one that ended before its first word. */
bool process_is_over(const struct allocation *a);
int process_ended_early(const struct allocation *a, struct err *e); /* returns -1 */

/* Notice its end: the phase becomes ended. */
must_check int process_watch(struct allocation *a, struct err *e);
void process_unwatch(struct allocation *a);

/* What engines and children say goes to a file of the allocation; its last line is the error. */
int process_log_open(const struct allocation *a); /* -1: they are not heard */
#define PROCESS_SAID_SIZE 200
void process_log_said(const struct allocation *a, char said[PROCESS_SAID_SIZE]); /* or "" */
void process_log_error(const struct allocation *a, const char *what, int status, struct err *e);

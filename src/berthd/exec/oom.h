/*
 * Did the host's kernel end an exec, for memory? Only the host can say so: init keeps the process
 * of a command that a SIGKILL of others ended until berth-node has looked, and tells its end then.
 */
#pragma once

#include "berthd/exec/exec.h"

/* Init says that a SIGKILL of others ended it, and keeps its process until it hears GO. */
void exec_oom_ask(struct exec *x);

/*
 * It was lost: did the kernel's log name init? False: that is not asked (in a shell, whose process
 * is not init's; or the log was asked about the command), and `events` does not come.
 */
must_check bool exec_oom_ask_lost(struct exec *x, const struct node_call_events *events);

/* Killed by a process we do not know, or gone without a word. `now` is NULL if not known. */
void exec_oom_judge(struct exec *x, const struct node_usage *now);

/*
 * An exec that is held before it runs anything: berth-node moves it into a cgroup of its own,
 * named like the exec. Where the host does not see a guest's processes it goes on without.
 * And one that a SIGKILL of others ended: init keeps its process until berth-node has looked
 * whether the host's kernel did it, for memory.
 */
#pragma once

#include "berthd/exec/exec.h"

/* Init says that it is, once, of one that was to be. */
bool exec_may_be_held(const struct exec *x);
void exec_held(struct exec *x, uint32_t pid);

void exec_killed(struct exec *x);

/* Killed by a process we do not know, or gone without a word. `now` is NULL if not known. */
void exec_name_killer(struct exec *x, const struct node_usage *now);

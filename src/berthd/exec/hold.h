/*
 * An exec that is held before it runs anything: berth-node moves it into a cgroup of its own,
 * named like the exec. Where the host does not see a guest's processes it goes on without.
 */
#pragma once

#include "berthd/exec/exec.h"

/* Init says that it is, once, of one that was to be. */
bool exec_may_be_held(const struct exec *x);
void exec_held(struct exec *x, uint32_t pid);

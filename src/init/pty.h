/* A terminal of the sandbox: our side is the master, the command's the slave. */
#pragma once

#include "lib/err.h"
#include "proto/exec.h"

/* `*slave` has no controlling process yet. Both close on exec; the master never waits. */
must_check int pty_open(const struct exec_size *size, int *master, int *slave, struct err *e);

/* In the new process, after setsid(). -1 with errno. */
must_check int pty_control(int slave);

void pty_resize(int master, const struct exec_size *size);

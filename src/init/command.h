/* The process a request asks for, started with exactly what it asks for. */
#pragma once

#include <sys/types.h>

#include "init/tree.h"
#include "lib/err.h"
#include "proto/exec.h"

struct command {
	pid_t pid;
	int in, out, err; /* our ends, non-blocking; -1: there is none */
};

/*
 * Returns once execve() has happened. If it cannot, the error says why and no
 * process is left, so no exit code has to be guessed from.
 */
must_check int command_start(const struct exec_request *q, struct tree *t, struct command *ret,
			     struct err *e);

#define COMMAND_MORE_MAX 4
struct command_more {
	int fds[COMMAND_MORE_MAX]; /* it also finds open, from 3 on: copies, ours stay ours */
	size_t count;

	/* Not NULL: it runs nothing before this has returned 0; otherwise it is killed. */
	int (*held)(void *data, pid_t pid, struct err *e);
	void *data;
};
must_check int command_start_with(const struct exec_request *q, struct tree *t,
				  const struct command_more *more, struct command *ret,
				  struct err *e);

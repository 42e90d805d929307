/*
 * The process behind a code context: python3 or node out of the sandbox's own
 * image, with a runner of ours in it.
 *
 * The runner is told what to run and says what came of it on descriptors of its
 * own; standard input is empty, and the standard outputs are the code's.
 */
#pragma once

#include "init/command.h"
#include "proto/context.h"

struct interpreter {
	struct command cmd;
	int requests; /* one line for each run */
	int notes;    /* what it has to say about them */
	int done;     /* a u32 for each run that is over */
};

must_check int interpreter_start(struct interpreter *i, const struct context_request *q,
				 struct tree *t, struct err *e);
void interpreter_close(struct interpreter *i); /* our ends only */

/* src/runner, made part of us by tools/gen-runners. */
extern const unsigned char runner_python[], runner_node[];
extern const size_t runner_python_len, runner_node_len;

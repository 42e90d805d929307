/*
 * An exec gone on with by its id, after the connection it was begun on has broken: its output
 * from where it broke off, its input, interrupts, and its end.
 */
#pragma once

#include "cli/command.h"
#include "cli/interrupt.h"
#include "proto/exec.h"

struct reattach {
	const char *sandbox, *exec;
	uint64_t position; /* bytes of output that were received */
	bool started;      /* it was heard that it runs */
	bool input;        /* standard input is still open */
	bool input_end;    /* it was at its end, which may not have been heard */
	struct interrupt *stop;
	struct buf held; /* input that was read and not taken yet */
	int owed;        /* a signal the command is still to be sent; 0: none */
	int (*put)(void *arg, int fd, struct bytes b, struct err *e);
	void *arg;

	struct exec_exit exit; /* the result, */
	int leave;             /* or our own exit status, if it was interrupted twice */
};

/* 1: it was never begun. -1: nothing is known of it, or r->leave is set. */
must_check int reattach(struct reattach *r, const struct context *c, struct err *e);

/* How a command's end becomes the exit status of `berth run` and `berth exec`. */
#pragma once

#include "proto/exec.h"

enum exit_code {
	EXIT_TIMED_OUT = 124,
	EXIT_BERTH = 125,      /* berth itself failed: nothing is known of the command */
	EXIT_CANNOT_RUN = 126, /* there, but no program, as in every shell */
	EXIT_NO_COMMAND = 127,
	EXIT_KILLED = 137, /* out of memory, or killed on request */
	EXIT_SIGNAL = 128, /* plus the signal's number */
};

int exit_code(const struct exec_exit *x);

/* Of a command that was not started: says why and gives the status, or -1 if berth failed. */
int exit_refused(const struct err *why, bool json);

/* A sentence for the ends a bare number does not explain; false: it does. */
#define EXIT_REASON_SIZE 120
bool exit_reason(const struct exec_exit *x, char out[EXIT_REASON_SIZE]);

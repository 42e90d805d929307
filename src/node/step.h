/*
 * The steps that bring a sandbox up, each with a time of its own.
 *
 * One that takes longer is ended, and the error names the step, its limit and the setting
 * that says it: "it took too long" alone does not tell an operator where.
 */
#pragma once

#include "lib/err.h"

enum step {
	STEP_DISK,   /* the snapshot of the image and its limit */
	STEP_ENGINE, /* from the engine's begin to its end */
	STEP_HELLO,  /* from there to the first word of init */
	STEP_COUNT
};

struct step_limits {
	uint64_t ms[STEP_COUNT];
};

/* Fills in ERR_TIMEOUT, and returns -1. */
int step_too_long(const struct step_limits *limits, enum step s, struct err *e);

/* Within what berthd waits for an answer at all. */
must_check int step_check(const struct step_limits *limits, struct err *e);

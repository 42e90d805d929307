/*
 * The phase of something that lives for a while: one enum, one table of the moves that are legal,
 * and one function that makes them, in place of booleans of which only some mixtures mean
 * anything. A move the table does not have is a bug of ours: it is logged and not made, and a
 * unit test ends with it.
 */
#pragma once

#include "lib/base.h"

struct phase_table {
	const char *what;         /* that has it, for the log */
	const char *const *names; /* of the phases */
	const uint32_t *next;     /* of each phase: PHASE_BIT() of those that may follow it */
	unsigned count;
};

#define PHASE_BIT(phase) (1U << (phase))

/* False: it is no legal move, and was not made. */
must_check bool phase_move(const struct phase_table *t, uint8_t *phase, unsigned to);

/* False; tests/test.c has one that is true. */
bool phase_bugs_are_fatal(void);

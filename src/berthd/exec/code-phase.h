/* Where a run of code is, from the request to the end of its memory. */
#pragma once

#include "lib/phase.h"

enum code_phase {
	CODE_DIALING,  /* on the way to init */
	CODE_FINDING,  /* the context's record is found or made */
	CODE_WAITING,  /* init was asked for it; other runs of the context come first */
	CODE_RUNNING,  /* init has said so */
	CODE_SETTLING, /* its end is known from init; was it the kernel, for memory? */
	CODE_ENDING,   /* that is known, too; the record of the run is still being written */
	CODE_CLOSED,   /* its memory goes with the last of what is pending */
	CODE_PHASE_COUNT
};

extern const struct phase_table code_phases;

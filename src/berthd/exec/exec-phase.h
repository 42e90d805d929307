/* Where an exec is, from the request to the end of its memory. */
#pragma once

#include "lib/phase.h"

enum exec_phase {
	EXEC_DIALING,   /* on the way to init, with nothing begun */
	EXEC_STARTING,  /* init was asked to run it */
	EXEC_HELD,      /* its process is there, and enters its cgroup */
	EXEC_GOING,     /* and was let go */
	EXEC_REACHING,  /* init has it, we think; on the way there, or asked for it */
	EXEC_RUNNING,   /* init has said so, on this connection */
	EXEC_MEASURING, /* it has ended: what did it use? */
	EXEC_RECORDING, /* the journal is to have its end */
	EXEC_TELLING,   /* it has; init is to hear that */
	EXEC_LEAVING,   /* and is being told */
	EXEC_CLOSED,    /* its memory goes with the last of what is pending */
	EXEC_PHASE_COUNT
};

extern const struct phase_table exec_phases;

#include "berthd/exec/code-phase.h"

static const char *const names[CODE_PHASE_COUNT] = {
	[CODE_DIALING] = "dialing",
	[CODE_FINDING] = "finding",
	[CODE_WAITING] = "waiting",
	[CODE_RUNNING] = "running",
	[CODE_SETTLING] = "settling",
	[CODE_ENDING] = "ending",
	[CODE_CLOSED] = "closed",
};

#define TO(phase) PHASE_BIT(CODE_##phase)

/* Its client may leave at any time: every phase can be the last. */
static const uint32_t moves[CODE_PHASE_COUNT] = {
	[CODE_DIALING] =
		TO(FINDING) | TO(WAITING) | TO(CLOSED), /* to end one has no record to find */
	[CODE_FINDING] = TO(WAITING) | TO(CLOSED),
	[CODE_WAITING] = TO(RUNNING) | TO(SETTLING) | TO(CLOSED),
	[CODE_RUNNING] = TO(SETTLING) | TO(CLOSED),
	[CODE_SETTLING] = TO(ENDING) | TO(CLOSED),
	[CODE_ENDING] = TO(CLOSED),
};

const struct phase_table code_phases = { "a run of code", names, moves, CODE_PHASE_COUNT };

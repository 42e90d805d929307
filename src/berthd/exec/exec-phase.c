#include "berthd/exec/exec-phase.h"

static const char *const names[EXEC_PHASE_COUNT] = {
	[EXEC_DIALING] = "dialing",
	[EXEC_STARTING] = "starting",
	[EXEC_HELD] = "held",
	[EXEC_GOING] = "going",
	[EXEC_REACHING] = "reaching",
	[EXEC_RUNNING] = "running",
	[EXEC_MEASURING] = "measuring",
	[EXEC_RECORDING] = "recording",
	[EXEC_TELLING] = "telling",
	[EXEC_LEAVING] = "leaving",
	[EXEC_CLOSED] = "closed",
};

#define TO(phase) PHASE_BIT(EXEC_##phase)
#define BROKEN    (TO(REACHING) | TO(MEASURING)) /* the connection, or it is lost */

static const uint32_t moves[EXEC_PHASE_COUNT] = {
	[EXEC_DIALING] = TO(STARTING) | TO(REACHING) | TO(TELLING) | TO(CLOSED),
	[EXEC_STARTING] = TO(HELD) | TO(RUNNING) | TO(CLOSED) | BROKEN,
	[EXEC_HELD] = TO(GOING) | TO(CLOSED) | BROKEN,
	[EXEC_GOING] = TO(RUNNING) | TO(CLOSED) | BROKEN,
	[EXEC_REACHING] = TO(RUNNING) | BROKEN,
	[EXEC_RUNNING] = BROKEN,
	[EXEC_MEASURING] = TO(RECORDING),
	[EXEC_RECORDING] = TO(TELLING),
	[EXEC_TELLING] = TO(TELLING) | TO(LEAVING) | TO(CLOSED),
	[EXEC_LEAVING] = TO(TELLING) | TO(CLOSED),
};

const struct phase_table exec_phases = { "an exec", names, moves, EXEC_PHASE_COUNT };

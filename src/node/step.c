#include "node/step.h"

#include <inttypes.h>

/* berthd waits 3 minutes for "create" (the disk) and as long for "start" (the other two). */
#define STEP_LIMIT_MAX_MS 80000

/* clang-format off */
static const struct {
	const char *setting;
	const char *what;
} steps[STEP_COUNT] = {
	[STEP_DISK]	= { "disk_limit",	"making its disk" },
	[STEP_ENGINE]	= { "engine_limit",	"starting its engine" },
	[STEP_HELLO]	= { "hello_limit",	"waiting for the first word of its init" },
};
/* clang-format on */

int step_too_long(const struct step_limits *limits, enum step s, struct err *e)
{
	err_set(e, ERR_TIMEOUT, "%s took longer than its limit of %" PRIu64 " ms", steps[s].what,
		limits->ms[s]);
	return err_fix(e,
		       "Try again; 'berth doctor' on the host says if it is slow or stuck. The "
		       "limit is %s in node.conf.",
		       steps[s].setting);
}

int step_check(const struct step_limits *limits, struct err *e)
{
	for (size_t i = 0; i < STEP_COUNT; i++)
		if (limits->ms[i] < 1 || limits->ms[i] > STEP_LIMIT_MAX_MS)
			return err_set(e, ERR_INVALID, "%s must be from 1ms to %ds",
				       steps[i].setting, STEP_LIMIT_MAX_MS / 1000);
	return 0;
}

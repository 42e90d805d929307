#include "core/profile.h"

#include <string.h>

#define MINUTE 60000

/* clang-format off */
static const struct profile profiles[] = {
	/* name       memory_mb cpu_milli pids  disk_mb  wall_ms */
	{ "small",    6144,     1000,     512,  12288,   30 * MINUTE },
	{ "standard", 12288,    4000,     1024, 20480,   30 * MINUTE },
};
/* clang-format on */

int profile_find(const char *name, const struct profile **ret, struct err *e)
{
	for (size_t i = 0; i < array_len(profiles); i++) {
		if (strcmp(profiles[i].name, name) != 0)
			continue;
		*ret = &profiles[i];
		return 0;
	}
	return err_set(e, ERR_INVALID, "profile must be \"small\" or \"standard\", not \"%.20s\"",
		       name);
}

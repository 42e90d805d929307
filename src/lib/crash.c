#include "lib/crash.h"

#ifdef BERTH_CRASH
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void crash_point(const char *name)
{
	static _Atomic unsigned passed;
	const char *at = getenv("BERTH_CRASH_AT");
	size_t len = strlen(name);

	if (at == NULL || strncmp(at, name, len) != 0 || (at[len] != '\0' && at[len] != ':'))
		return;
	unsigned wanted = 1;
	if (at[len] == ':' && at[len + 1] >= '1' && at[len + 1] <= '9')
		wanted = (unsigned)(at[len + 1] - '0');
	if (atomic_fetch_add(&passed, 1) + 1 == wanted)
		(void)kill(getpid(), SIGKILL);
}
#else
/* ISO C wants something in every file. */
extern const int crash_points_are_off;
const int crash_points_are_off = 1;
#endif

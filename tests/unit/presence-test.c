#include "node/presence.h"

#include <fcntl.h>

#include "test.h"

TEST(unknown_never_becomes_absent)
{
	static const enum presence sums[PRESENCE_COUNT][PRESENCE_COUNT] = {
		[PRESENCE_UNKNOWN] = { PRESENCE_UNKNOWN, PRESENCE_UNKNOWN, PRESENCE_PRESENT },
		[PRESENCE_ABSENT] = { PRESENCE_UNKNOWN, PRESENCE_ABSENT, PRESENCE_PRESENT },
		[PRESENCE_PRESENT] = { PRESENCE_PRESENT, PRESENCE_PRESENT, PRESENCE_PRESENT },
	};

	for (int a = 0; a < PRESENCE_COUNT; a++)
		for (int b = 0; b < PRESENCE_COUNT; b++)
			CHECK_INT(presence_sum((enum presence)a, (enum presence)b), sums[a][b]);
}

TEST(only_a_name_that_is_not_there_is_absent)
{
	CHECK_INT(presence_at(AT_FDCWD, "/dev/null"), PRESENCE_PRESENT);
	CHECK_INT(presence_at(AT_FDCWD, "/dev/no-such-name"), PRESENCE_ABSENT);
	CHECK_INT(presence_at(AT_FDCWD, "/dev/null/below"), PRESENCE_UNKNOWN);
	CHECK_INT(presence_at(-1, "relative"), PRESENCE_UNKNOWN);
}

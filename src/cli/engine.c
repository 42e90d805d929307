#include "cli/engine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/programs.h"
#include "lib/time.h"

/* Days of the civil calendar since 1970-01-01. */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
	int64_t era, of_era, of_year;

	y -= m <= 2; /* years begin in March: the leap day is their last */
	era = y / 400;
	of_era = y - era * 400;
	of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t engine_age_days(unsigned year, unsigned month, unsigned day)
{
	return (int64_t)(time_wall_ms() / 1000 / 86400) - days_from_civil(year, month, day);
}

/* "...20221219..." somewhere in the line: gVisor's releases are dates. */
static bool find_date(const char *s, unsigned *year, unsigned *month, unsigned *day)
{
	for (; *s; s++) {
		size_t digits = strspn(s, "0123456789");
		unsigned n = 0;

		if (digits == 8 && s[0] == '2' && s[1] == '0') {
			for (size_t i = 0; i < 8; i++)
				n = n * 10 + (unsigned)(s[i] - '0');
			*year = n / 10000;
			*month = n / 100 % 100;
			*day = n % 100;
			return *month >= 1 && *month <= 12 && *day >= 1 && *day <= 31;
		}
		s += digits ? digits - 1 : 0;
	}
	return false;
}

bool engine_runsc(struct engine *ret)
{
	static const char *const argv[] = { "runsc", "--version", NULL };
	char path[PATH_MAX];

	*ret = (struct engine){ 0 };
	if (!program_on_path("runsc", path) ||
	    !program_first_line(argv, ret->line, sizeof(ret->line)))
		return false;
	ret->dated = find_date(ret->line, &ret->year, &ret->month, &ret->day);
	if (ret->dated)
		ret->age_days = engine_age_days(ret->year, ret->month, ret->day);
	return true;
}

const char *engine_default(char why[ENGINE_WHY_SIZE])
{
	static const char trusted[] = "New sandboxes run with crun, for code you trust: gVisor";
	struct engine runsc;

	if (!engine_runsc(&runsc)) {
		snprintf(why, ENGINE_WHY_SIZE, "%s is not installed.", trusted);
		return "crun";
	}
	if (!runsc.dated) {
		snprintf(why, ENGINE_WHY_SIZE, "%s is here, of an age that is not known.", trusted);
		return "crun";
	}
	if (runsc.age_days > ENGINE_FRESH_DAYS) {
		snprintf(why, ENGINE_WHY_SIZE, "%s is of %u-%02u-%02u, too old to be a wall.",
			 trusted, runsc.year, runsc.month, runsc.day);
		return "crun";
	}
	snprintf(why, ENGINE_WHY_SIZE,
		 "New sandboxes run with gVisor of %u-%02u-%02u, for code you did not write.",
		 runsc.year, runsc.month, runsc.day);
	return "runsc";
}

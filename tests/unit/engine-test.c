/* Which engine a new server uses. The runsc here is a fake: the real one has one age. */
#include "cli/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static char dir[] = "/tmp/berth-engine-XXXXXX", program[64];

static void remove_dir(void)
{
	(void)unlink(program);
	(void)rmdir(dir);
}

static void fake_runsc(const char *version)
{
	FILE *f;

	if (!program[0]) {
		CHECK(mkdtemp(dir) && atexit(remove_dir) == 0);
		snprintf(program, sizeof(program), "%s/runsc", dir);
		CHECK(setenv("PATH", dir, 1) == 0);
	}
	(void)unlink(program);
	if (!version)
		return;
	f = fopen(program, "we");
	CHECK(f);
	fprintf(f, "#!/bin/sh\necho 'runsc version %s'\n", version);
	CHECK(fclose(f) == 0 && chmod(program, 0755) == 0);
}

static const char *of_age(int days, char *out, size_t size)
{
	time_t then = time(NULL) - (time_t)days * 86400;
	struct tm tm;

	strftime(out, size, "release-%Y%m%d.0", gmtime_r(&then, &tm));
	return out;
}

TEST(gvisor_is_the_default_where_it_is_here_and_fresh)
{
	static const struct {
		int days;
		const char *engine;
	} rows[] = { { 0, "runsc" },
		     { ENGINE_FRESH_DAYS, "runsc" },
		     { ENGINE_FRESH_DAYS + 1, "crun" },
		     { 1400, "crun" } };
	char why[ENGINE_WHY_SIZE], version[64];

	for (size_t i = 0; i < array_len(rows); i++) {
		fake_runsc(of_age(rows[i].days, version, sizeof(version)));
		CHECK_STR(engine_default(why), rows[i].engine);
		CHECK(strstr(why, rows[i].engine[0] == 'r' ? "did not write" : "too old"));
	}
}

TEST(what_is_not_known_to_be_fresh_is_not_the_default)
{
	char why[ENGINE_WHY_SIZE];

	fake_runsc("VERSION_MISSING");
	CHECK_STR(engine_default(why), "crun");
	CHECK(strstr(why, "not known"));
	fake_runsc("release-20261399.0"); /* a 13th month */
	CHECK_STR(engine_default(why), "crun");
	fake_runsc(NULL);
	CHECK_STR(engine_default(why), "crun");
	CHECK(strstr(why, "not installed"));
}

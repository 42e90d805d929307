#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/check.h"
#include "cli/engine.h"
#include "cli/programs.h"
#include "lib/str.h"

/* clang-format off */
/* When crun's releases came out, to the month. */
static const struct {
	const char *version;
	unsigned year, month;
} crun_releases[] = {
	{ "1.8.1",	2023, 2 },	/* Debian 12 */
	{ "1.14.1",	2024, 2 },
	{ "1.21",	2025, 3 },	/* Debian 13 */
};
/* clang-format on */

#define CRUN_FIX "Fine for trusted code. Keep your distribution's updates coming."

void check_crun(const struct context *c, struct check *ret)
{
	static const char *const argv[] = { "crun", "--version", NULL };
	static const char prefix[] = "crun version ";
	char line[128], path[PATH_MAX];

	(void)c;
	if (!program_on_path("crun", path) || !program_first_line(argv, line, sizeof(line)) ||
	    !str_starts(line, prefix)) {
		check_set(ret, CHECK_WARN, "apt install crun, unless all your sandboxes use runsc.",
			  "not here");
		return;
	}
	for (size_t i = 0; i < array_len(crun_releases); i++) {
		int64_t days = engine_age_days(crun_releases[i].year, crun_releases[i].month, 15);

		if (!str_ends(line, crun_releases[i].version) ||
		    strlen(line) != strlen(prefix) + strlen(crun_releases[i].version))
			continue;
		check_set(ret, days < ENGINE_FRESH_DAYS ? CHECK_OK : CHECK_WARN,
			  days < ENGINE_FRESH_DAYS ? NULL : CRUN_FIX,
			  "%s, released %u-%02u: %lld days old", line + strlen(prefix),
			  crun_releases[i].year, crun_releases[i].month, (long long)days);
		return;
	}
	check_set(ret, CHECK_OK, NULL, "%s, of an age that is not known here",
		  line + strlen(prefix));
}

void check_runsc(const struct context *c, struct check *ret)
{
	struct engine runsc;
	bool old;

	(void)c;
	if (!engine_runsc(&runsc)) {
		check_set(ret, CHECK_WARN,
			  "Needed to run hostile code: install gVisor's current release.",
			  "not here; only crun (shared kernel, trusted code) can be used");
		return;
	}
	if (!runsc.dated) {
		check_set(ret, CHECK_OK, NULL, "%s", runsc.line);
		return;
	}
	old = runsc.age_days > ENGINE_FRESH_DAYS;
	check_set(ret, old ? CHECK_WARN : CHECK_OK,
		  old ? "Good for tests. Current builds come from the gVisor project." : NULL,
		  "of %u-%02u-%02u, %lld days old%s", runsc.year, runsc.month, runsc.day,
		  (long long)runsc.age_days, old ? ": old for a security boundary" : "");
}

void check_nft(const struct context *c, struct check *ret)
{
	static const char *const argv[] = { "nft", "--version", NULL };
	char line[128], path[PATH_MAX];

	(void)c;
	if (program_on_path("nft", path) && program_first_line(argv, line, sizeof(line)))
		check_set(ret, CHECK_OK, NULL, "%s", line);
	else
		check_set(ret, CHECK_FAIL, "apt install nftables", "not here, or not on PATH");
}

void check_postgres(const struct context *c, struct check *ret)
{
	char path[PATH_MAX], line[128];
	const char *const argv[] = { path, "--version", NULL };
	const char *p;
	unsigned major = 0;
	struct err e;

	(void)c;
	if (program_find_postgres("postgres", path, &e) < 0 ||
	    !program_first_line(argv, line, sizeof(line))) {
		check_set(ret, CHECK_FAIL, "apt install postgresql", "not here");
		return;
	}
	for (p = strpbrk(line, "0123456789"); p && *p >= '0' && *p <= '9' && major < 1000; p++)
		major = major * 10 + (unsigned)(*p - '0');
	if (major < 15)
		check_set(ret, CHECK_FAIL, "Berth needs 15 or newer.", "%s", line);
	else
		check_set(ret, CHECK_OK, NULL, "%s", line);
}

void check_image_tools(const struct context *c, struct check *ret)
{
	char path[PATH_MAX];

	(void)c;
	if (program_on_path("skopeo", path))
		check_set(ret, CHECK_OK, NULL, "%s", path);
	else
		check_set(ret, CHECK_WARN,
			  "apt install skopeo; `berth image import` works without.",
			  "skopeo is not here: images cannot be pulled");
}

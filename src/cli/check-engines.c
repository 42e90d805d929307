#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/programs.h"
#include "lib/proc.h"
#include "lib/str.h"
#include "lib/time.h"

#define ANSWER_MS 5000
#define YEAR_DAYS 365

bool check_first_line(const char *const *argv, char *out, size_t size)
{
	cleanup(close_fd) int in = -1, to = -1;
	struct proc_spec spec = { .argv = argv, .in = -1, .err = -1 };
	struct pollfd p = { .events = POLLIN };
	struct proc proc;
	struct err ignored;
	int ends[2];
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	in = ends[0];
	to = ends[1];
	spec.out = to;
	if (proc_start(&spec, &proc, &ignored) < 0)
		return false;
	close_fd(&to);
	to = -1;
	p.fd = in;
	n = poll(&p, 1, ANSWER_MS) > 0 ? read(in, out, size - 1) : -1;
	proc_kill(&proc, SIGKILL); /* one line was all we wanted */
	(void)proc_wait(&proc);
	if (n <= 0)
		return false;
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	return true;
}

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

int64_t check_age_days(unsigned year, unsigned month, unsigned day)
{
	return (int64_t)(time_wall_ms() / 1000 / 86400) - days_from_civil(year, month, day);
}

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
	if (!program_on_path("crun", path) || !check_first_line(argv, line, sizeof(line)) ||
	    !str_starts(line, prefix)) {
		check_set(ret, CHECK_WARN, "apt install crun, unless all your sandboxes use runsc.",
			  "not here");
		return;
	}
	for (size_t i = 0; i < array_len(crun_releases); i++) {
		int64_t days = check_age_days(crun_releases[i].year, crun_releases[i].month, 15);

		if (!str_ends(line, crun_releases[i].version) ||
		    strlen(line) != strlen(prefix) + strlen(crun_releases[i].version))
			continue;
		check_set(ret, days < YEAR_DAYS ? CHECK_OK : CHECK_WARN,
			  days < YEAR_DAYS ? NULL : CRUN_FIX,
			  "%s, released %u-%02u: %lld days old", line + strlen(prefix),
			  crun_releases[i].year, crun_releases[i].month, (long long)days);
		return;
	}
	check_set(ret, CHECK_OK, NULL, "%s, of an age that is not known here",
		  line + strlen(prefix));
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

static void say_date(struct check *ret, unsigned year, unsigned month, unsigned day)
{
	int64_t days = check_age_days(year, month, day);
	bool old = days > YEAR_DAYS;

	check_set(ret, old ? CHECK_WARN : CHECK_OK,
		  old ? "Good for tests. Current builds come from the gVisor project." : NULL,
		  "of %u-%02u-%02u, %lld days old%s", year, month, day, (long long)days,
		  old ? ": old for a security boundary" : "");
}

void check_runsc(const struct context *c, struct check *ret)
{
	static const char *const argv[] = { "runsc", "--version", NULL };
	unsigned year, month, day;
	char line[128], path[PATH_MAX];

	(void)c;
	if (!program_on_path("runsc", path) || !check_first_line(argv, line, sizeof(line)))
		check_set(ret, CHECK_WARN,
			  "Needed to run hostile code: install gVisor's current release.",
			  "not here; only crun (shared kernel, trusted code) can be used");
	else if (!find_date(line, &year, &month, &day))
		check_set(ret, CHECK_OK, NULL, "%s", line);
	else
		say_date(ret, year, month, day);
}

void check_nft(const struct context *c, struct check *ret)
{
	static const char *const argv[] = { "nft", "--version", NULL };
	char line[128], path[PATH_MAX];

	(void)c;
	if (program_on_path("nft", path) && check_first_line(argv, line, sizeof(line)))
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
	    !check_first_line(argv, line, sizeof(line))) {
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

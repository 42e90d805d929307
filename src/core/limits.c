#include "core/limits.h"

#include <inttypes.h>

#define GRACE_MS INT64_C(60000)
#define DAYS_30  INT64_C(2592000000)

/* clang-format off */
static const struct {
	const char *name;
	bool none; /* 0 is allowed */
	int64_t min, max, usual;
} rows[LIMIT_COUNT] = {
	[LIMIT_MEMORY_MB]   = { "memory_mb",   false, 16,   1 << 20,          512 },
	[LIMIT_CPU_MILLI]   = { "cpu_milli",   false, 10,   256000,           1000 },
	[LIMIT_PIDS]        = { "pids",        false, 8,    65536,            256 },
	[LIMIT_DISK_MB]     = { "disk_mb",     false, 16,   1 << 24,          2048 },
	[LIMIT_OPEN_FILES]  = { "open_files",  false, 64,   1 << 20,          16384 },
	[LIMIT_CPU_MS]      = { "cpu_ms",      true,  100,  DAYS_30,          0 },
	[LIMIT_WALL_MS]     = { "wall_ms",     true,  100,  DAYS_30,          0 },
	[LIMIT_GRACE_MS]    = { "grace_ms",    false, 1000, DAYS_30,          GRACE_MS },
	[LIMIT_CONNECTIONS] = { "connections", true,  1,    INT64_C(1) << 40, 0 },
	[LIMIT_REQUESTS]    = { "requests",    true,  1,    INT64_C(1) << 40, 0 },
	[LIMIT_BYTES_OUT]   = { "bytes_out",   true,  1,    INT64_C(1) << 60, 0 },
	[LIMIT_ARTIFACT_MB] = { "artifact_mb", true,  1,    1 << 24,          200 },
};
/* clang-format on */

const char *limit_name(enum limit l)
{
	return rows[l].name;
}

struct limits limits_usual(void)
{
	struct limits usual;

	for (int i = 0; i < LIMIT_COUNT; i++)
		usual.of[i] = rows[i].usual;
	return usual;
}

struct limits limits_usual_on(const struct limits *host)
{
	struct limits usual = limits_usual();
	int64_t most = host->of[LIMIT_OPEN_FILES];

	if (most >= rows[LIMIT_OPEN_FILES].min && most < usual.of[LIMIT_OPEN_FILES])
		usual.of[LIMIT_OPEN_FILES] = most;
	return usual;
}

struct limits limits_open(void)
{
	struct limits open;

	for (int i = 0; i < LIMIT_COUNT; i++)
		open.of[i] = LIMIT_OPEN;
	return open;
}

struct limits limits_fill(const struct limits *l, const struct limits *usual)
{
	struct limits filled;

	for (int i = 0; i < LIMIT_COUNT; i++)
		filled.of[i] = l->of[i] == LIMIT_OPEN ? usual->of[i] : l->of[i];
	return filled;
}

int limits_check(const struct limits *l, bool open, struct err *e)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		int64_t n = l->of[i];

		if ((n >= rows[i].min && n <= rows[i].max) || (n == 0 && rows[i].none) ||
		    (n == LIMIT_OPEN && open))
			continue;
		return err_set(e, ERR_INVALID,
			       "%s must be %s%" PRId64 " to %" PRId64 ", not %" PRId64,
			       rows[i].name, rows[i].none ? "0 (none), or " : "", rows[i].min,
			       rows[i].max, n);
	}
	return 0;
}

int limits_fit(const struct limits *asked, const struct limits *host, struct err *e)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (host->of[i] <= 0 || asked->of[i] <= host->of[i])
			continue;
		err_set(e, ERR_INVALID,
			"%s: %" PRId64 " asked for, and one sandbox may have %" PRId64
			" at most on the largest host there is",
			rows[i].name, asked->of[i], host->of[i]);
		return err_fix(e, "Ask for less; 'berth host ls' shows what there is.");
	}
	return 0;
}

uint64_t limits_ms(const struct limits *l, enum limit which, unsigned divisor)
{
	uint64_t ms = (uint64_t)l->of[which];

	if (ms == 0)
		return 0;
	ms /= divisor ? divisor : 1;
	return ms ? ms : 1;
}

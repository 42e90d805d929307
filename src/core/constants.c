#include "core/constants.h"

#define SECOND UINT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

/* clang-format off */
static const uint64_t constants[CONSTANT_COUNT] = {
	[CONSTANT_SLEEP_AFTER]		= 10 * MINUTE,
	[CONSTANT_ORPHAN]		= 10 * MINUTE,
	[CONSTANT_STUCK]		= 30 * MINUTE,
	[CONSTANT_SWEEP]		= 5 * MINUTE,
	[CONSTANT_USED_FLUSH]		= 2 * SECOND,
	[CONSTANT_SAMPLE]		= 30 * SECOND,
	[CONSTANT_CREATE]		= 2 * MINUTE,
	[CONSTANT_STARTUP]		= 10 * MINUTE,
	[CONSTANT_READY_ONLY]		= 60 * SECOND,
	[CONSTANT_KEEP_WARM]		= 5 * MINUTE,
	[CONSTANT_PING]			= 60 * SECOND,
	[CONSTANT_PONG]			= 30 * SECOND,
	[CONSTANT_NO_OUTPUT]		= 330 * SECOND,
	[CONSTANT_STOP_ATTEMPT]		= 45 * SECOND,
	[CONSTANT_OBSERVE_1]		= 100,
	[CONSTANT_OBSERVE_2]		= 500,
	[CONSTANT_OBSERVE_3]		= 1 * SECOND,
	[CONSTANT_STOP_BACKOFF_1]	= 5 * SECOND,
	[CONSTANT_STOP_BACKOFF_2]	= 10 * SECOND,
	[CONSTANT_STOP_BACKOFF_3]	= 30 * SECOND,
	[CONSTANT_STOP_BACKOFF_4]	= 60 * SECOND,
	[CONSTANT_STOP_BACKOFF_5]	= 120 * SECOND,
	[CONSTANT_RECHECK_FIRST]	= 10 * MINUTE,
	[CONSTANT_RECHECK_MAX]		= 6 * HOUR,
	[CONSTANT_HOST_LEASE]		= 30 * SECOND,
	[CONSTANT_HOST_RENEW]		= 10 * SECOND,
	[CONSTANT_HOST_FREEZE_BEFORE]	= 5 * SECOND,
	[CONSTANT_HOST_MARGIN]		= 10 * SECOND,
	[CONSTANT_TERMINAL]		= 60 * MINUTE,
};
/* clang-format on */

uint64_t constant_ms(enum constant c, unsigned divisor)
{
	uint64_t ms = constants[c] / (divisor ? divisor : 1);

	return ms ? ms : 1;
}

uint64_t moment_add(uint64_t from_ms, uint64_t ms)
{
	if (from_ms >= NEVER - 1 || ms > NEVER - 1 - from_ms)
		return NEVER - 1;
	return from_ms + ms;
}

uint64_t moment_after(const struct moment *at, enum constant c)
{
	return moment_add(at->now_ms, constant_ms(c, at->divisor));
}

/* A jitter outside its range, or no number at all, adds nothing. */
static uint64_t jittered(uint64_t ms, double jitter)
{
	if (!(jitter >= 0 && jitter < 1))
		return ms;
	return ms + (uint64_t)((double)ms * jitter / JITTER_SHARE);
}

uint64_t constant_backoff_ms(unsigned attempts, const struct moment *at)
{
	unsigned last = CONSTANT_STOP_BACKOFF_5 - CONSTANT_STOP_BACKOFF_1;
	unsigned i = attempts ? attempts - 1 : 0;
	unsigned c = CONSTANT_STOP_BACKOFF_1 + (i < last ? i : last);

	return jittered(constant_ms((enum constant)c, at->divisor), at->jitter);
}

uint64_t constant_recheck_ms(unsigned rechecks, const struct moment *at)
{
	uint64_t max = constant_ms(CONSTANT_RECHECK_MAX, at->divisor);
	uint64_t ms = constant_ms(CONSTANT_RECHECK_FIRST, at->divisor);

	for (unsigned i = 0; i < rechecks && ms < max; i++)
		ms *= 2;
	return jittered(ms < max ? ms : max, at->jitter);
}

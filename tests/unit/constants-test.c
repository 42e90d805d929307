#include "core/constants.h"

#include "test.h"

static const struct moment plain = { .now_ms = 1000, .divisor = 1 };

TEST(the_times_are_those_of_the_requirements)
{
	static const struct {
		enum constant c;
		long long seconds;
	} want[] = {
		{ CONSTANT_SLEEP_AFTER, 600 },
		{ CONSTANT_ORPHAN, 600 },
		{ CONSTANT_STUCK, 1800 },
		{ CONSTANT_STARTUP, 600 },
		{ CONSTANT_READY_ONLY, 60 },
		{ CONSTANT_KEEP_WARM, 300 },
		{ CONSTANT_STOP_ATTEMPT, 45 },
		{ CONSTANT_RECHECK_FIRST, 600 },
		{ CONSTANT_RECHECK_MAX, 21600 },
		{ CONSTANT_HOST_LEASE, 30 },
		{ CONSTANT_HOST_RENEW, 10 },
		{ CONSTANT_NO_OUTPUT, 330 },
	};

	for (size_t i = 0; i < array_len(want); i++)
		CHECK_INT((long long)constant_ms(want[i].c, 1), want[i].seconds * 1000);
	CHECK_INT((long long)constant_ms(CONSTANT_OBSERVE_1, 1), 100);
	CHECK_INT((long long)constant_ms(CONSTANT_OBSERVE_2, 1), 500);
	CHECK_INT((long long)constant_ms(CONSTANT_OBSERVE_3, 1), 1000);
}

TEST(none_is_ever_zero)
{
	for (int c = 0; c < CONSTANT_COUNT; c++) {
		CHECK(constant_ms((enum constant)c, 1) > 1);
		CHECK(constant_ms((enum constant)c, UINT32_MAX) >= 1);
		CHECK_INT((long long)constant_ms((enum constant)c, 0),
			  (long long)constant_ms((enum constant)c, 1));
	}
}

TEST(one_divisor_shortens_all_alike)
{
	for (int c = 0; c < CONSTANT_COUNT; c++)
		CHECK_INT((long long)constant_ms((enum constant)c, 100),
			  (long long)constant_ms((enum constant)c, 1) / 100);
}

TEST(backoff_follows_the_ladder_and_jitter_only_adds)
{
	static const long long seconds[] = { 5, 10, 30, 60, 120, 120 };
	struct moment most = { .divisor = 1, .jitter = 0.999999 };

	for (unsigned i = 0; i < array_len(seconds); i++) {
		CHECK_INT((long long)constant_backoff_ms(i + 1, &plain), seconds[i] * 1000);
		CHECK(constant_backoff_ms(i + 1, &most) > (uint64_t)seconds[i] * 1000);
		CHECK(constant_backoff_ms(i + 1, &most) < (uint64_t)seconds[i] * 1200);
	}
	most.jitter = 7; /* not a jitter */
	CHECK_INT((long long)constant_backoff_ms(1, &most), 5000);
	most.jitter = __builtin_nan("");
	CHECK_INT((long long)constant_backoff_ms(1, &most), 5000);
}

TEST(rechecks_double_from_ten_minutes_to_six_hours)
{
	static const long long minutes[] = { 10, 20, 40, 80, 160, 320, 360, 360 };

	for (unsigned i = 0; i < array_len(minutes); i++)
		CHECK_INT((long long)constant_recheck_ms(i, &plain), minutes[i] * 60000);
	CHECK_INT((long long)constant_recheck_ms(UINT32_MAX, &plain), 360 * 60000);
}

/* Freezing must be over before the lease is, and two renewals may fail before it starts. */
TEST(a_host_may_miss_a_renewal_and_still_freezes_in_time)
{
	uint64_t lease = constant_ms(CONSTANT_HOST_LEASE, 1);
	uint64_t freeze = lease - constant_ms(CONSTANT_HOST_FREEZE_BEFORE, 1);

	CHECK(2 * constant_ms(CONSTANT_HOST_RENEW, 1) < freeze);
	CHECK(freeze < lease);
}

TEST(a_sum_of_times_never_wraps)
{
	struct moment late = { .now_ms = NEVER - 5, .divisor = 1 };

	CHECK(moment_after(&late, CONSTANT_ORPHAN) == NEVER - 1);
	CHECK(moment_add(NEVER, 1) == NEVER - 1);
	CHECK(moment_add(5, 7) == 12);
	CHECK_INT((long long)moment_after(&plain, CONSTANT_HOST_LEASE), 31000);
}

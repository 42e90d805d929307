#include "core/alarm.h"

#include "test.h"

#define HOUR UINT64_C(3600000)
#define T0   (1000 * HOUR)

static const struct alarm_rules rules = {
	.divisor = 1,
	.unwritten_ms = 4000,
};

static struct sandbox ready(void)
{
	return (struct sandbox){
		.state = SANDBOX_READY,
		.created_ms = T0,
		.expires_ms = T0 + 24 * HOUR,
		.last_used_ms = T0 + 1000,
	};
}

static void check(const struct sandbox *sb, uint64_t now, enum alarm_kind kind, uint64_t at)
{
	struct alarm a = alarm_of(sb, &rules, now);

	CHECK_STR(alarm_name(a.kind), alarm_name(kind));
	CHECK_INT(a.at_ms, at);
}

TEST(who_rests_goes_when_it_is_too_old)
{
	struct sandbox sb = ready();

	check(&sb, T0, ALARM_AGE, T0 + 24 * HOUR);
	sb.state = SANDBOX_ASLEEP;
	check(&sb, T0, ALARM_AGE, T0 + 24 * HOUR);
	sb.state = SANDBOX_FAILED;
	check(&sb, T0, ALARM_AGE, T0 + 24 * HOUR);
}

TEST(who_has_no_lifetime_is_never_too_old)
{
	struct sandbox sb = ready();

	sb.expires_ms = 0;
	check(&sb, T0 + 9999 * HOUR, ALARM_NONE, NEVER);
}

TEST(a_lifetime_holds_for_who_is_kept_alive_too)
{
	struct sandbox sb = ready();

	sb.keep_alive = true;
	sb.sleep_after_ms = 5;
	check(&sb, T0, ALARM_AGE, T0 + 24 * HOUR);
}

TEST(who_is_kept_alive_and_has_no_lifetime_has_no_alarm)
{
	struct sandbox sb = ready();

	sb.expires_ms = 0;
	sb.keep_alive = true;
	sb.sleep_after_ms = 5;
	sb.limits.of[LIMIT_WALL_MS] = 30 * 60000;
	sb.limits.of[LIMIT_GRACE_MS] = 60000;
	sb.busy_ms = T0;
	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		sb.state = (enum sandbox_state)s;
		check(&sb, T0 + 99 * HOUR, ALARM_NONE, NEVER);
	}
}

/* Whoever waits has the deadline of its state, and no other. */
TEST(every_state_has_one_kind_of_deadline_or_none)
{
	struct sandbox sb = ready();

	sb.sleep_after_ms = 5;
	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		bool waits = lifecycle_deadline_ms((enum sandbox_state)s, 1) > 0;

		sb.state = (enum sandbox_state)s;
		if (waits || s == SANDBOX_GONE)
			check(&sb, T0, ALARM_NONE, NEVER);
		else
			CHECK(alarm_of(&sb, &rules, T0).kind != ALARM_NONE);
	}
}

TEST(who_is_not_used_is_idle_and_only_who_is_ready)
{
	struct sandbox sb = ready();

	sb.sleep_after_ms = 600000;
	check(&sb, T0 + 2000, ALARM_IDLE, T0 + 1000 + 600000);
	sb.last_used_ms += 7;
	check(&sb, T0 + 2000, ALARM_IDLE, T0 + 1000 + 600000 + 7);
	sb.state = SANDBOX_ASLEEP;
	check(&sb, T0 + 2000, ALARM_AGE, T0 + 24 * HOUR);
}

/* An earlier berthd may have died with a use it had not written. */
TEST(who_was_used_before_this_berthd_began_may_have_been_used_until_then)
{
	struct alarm_rules later = rules;
	struct sandbox sb = ready();

	sb.sleep_after_ms = 600000;
	later.began_ms = sb.last_used_ms + 7000;
	CHECK_INT(alarm_of(&sb, &later, later.began_ms).at_ms, later.began_ms + 600000);
	CHECK_INT(alarm_of(&sb, &later, later.began_ms + HOUR).at_ms, later.began_ms + 600000);
	sb.last_used_ms = later.began_ms + 1; /* this one knows of it */
	CHECK_INT(alarm_of(&sb, &later, later.began_ms + 2).at_ms, sb.last_used_ms + 600000);
}

TEST(who_is_busy_is_not_idle_unless_nobody_knows_of_it_any_more)
{
	struct sandbox sb = ready();
	uint64_t now = T0 + 2000;

	sb.sleep_after_ms = 600000;
	sb.busy_ms = T0 + 500;
	check(&sb, now, ALARM_IDLE, now + 600000); /* asked again then */
	now = sb.last_used_ms + HOUR;              /* whoever was busy with it died */
	check(&sb, now, ALARM_IDLE, sb.last_used_ms + 600000);
}

TEST(who_is_busy_past_its_wall_is_stuck)
{
	struct sandbox sb = ready();

	sb.limits.of[LIMIT_WALL_MS] = 30 * 60000;
	sb.limits.of[LIMIT_GRACE_MS] = 60000;
	sb.busy_ms = T0 + 500;
	check(&sb, T0 + 1000, ALARM_STUCK, T0 + 500 + 31 * 60000);
	sb.busy_ms = 0;
	check(&sb, T0 + 1000, ALARM_STUCK, T0 + 1000 + 31 * 60000); /* asked again then */
	sb.limits.of[LIMIT_WALL_MS] = 0;
	check(&sb, T0 + 1000, ALARM_AGE, T0 + 24 * HOUR);
}

/* Three writes may be lost, and then as long as a slow database takes. */
TEST(busy_is_believed_for_so_long_and_no_longer)
{
	struct sandbox sb = ready();
	uint64_t until = sb.last_used_ms + 3 * 4000 + 5000;

	sb.busy_ms = T0;
	sb.sleep_after_ms = 10;
	check(&sb, until - 1, ALARM_IDLE, until - 1 + 10);
	check(&sb, until, ALARM_IDLE, sb.last_used_ms + 10);
}

TEST(of_two_alarms_at_once_the_graver_is_told)
{
	struct sandbox sb = ready();

	sb.sleep_after_ms = 24 * HOUR - 1000; /* idle when it is too old */
	check(&sb, T0 + 2000, ALARM_AGE, T0 + 24 * HOUR);
}

TEST(every_kind_has_its_word)
{
	CHECK_STR(alarm_name(ALARM_NONE), "none");
	CHECK_STR(alarm_name(ALARM_IDLE), "idle");
	CHECK_STR(alarm_name(ALARM_STUCK), "stuck");
	CHECK_STR(alarm_name(ALARM_AGE), "age");
}

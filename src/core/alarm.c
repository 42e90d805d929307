#include "core/alarm.h"

#define BUSY_TIMES    3
#define BUSY_LEAST_MS 5000 /* a slow database, whatever a divisor says */

static const char *const names[ALARM_KIND_COUNT] = {
	[ALARM_NONE] = "none",
	[ALARM_IDLE] = "idle",
	[ALARM_STUCK] = "stuck",
	[ALARM_AGE] = "age",
};

static void sooner(struct alarm *a, enum alarm_kind kind, uint64_t at_ms)
{
	if (at_ms < a->at_ms)
		*a = (struct alarm){ kind, at_ms };
}

static uint64_t stuck_ms(const struct sandbox *sb, const struct alarm_rules *rules)
{
	uint64_t wall = limits_ms(&sb->limits, LIMIT_WALL_MS, rules->divisor);

	return wall ? wall + limits_ms(&sb->limits, LIMIT_GRACE_MS, rules->divisor) : 0;
}

static bool is_busy(const struct sandbox *sb, const struct alarm_rules *rules, uint64_t now_ms)
{
	uint64_t most = BUSY_TIMES * rules->unwritten_ms + BUSY_LEAST_MS;

	return sb->busy_ms && now_ms < moment_add(sb->last_used_ms, most);
}

struct alarm alarm_of(const struct sandbox *sb, const struct alarm_rules *rules, uint64_t now_ms)
{
	struct alarm a = { ALARM_NONE, NEVER };
	bool busy = is_busy(sb, rules, now_ms);
	bool ready = sb->state == SANDBOX_READY;
	uint64_t used = sb->last_used_ms > rules->began_ms ? sb->last_used_ms : rules->began_ms;
	uint64_t stuck;

	if (!ready && sb->state != SANDBOX_ASLEEP && sb->state != SANDBOX_FAILED)
		return a;
	if (sb->expires_ms)
		sooner(&a, ALARM_AGE, sb->expires_ms);
	if (!ready || sb->keep_alive)
		return a;
	/* A busy one may be idle soon, an idle one busy: then is early enough to ask again. */
	if (sb->sleep_after_ms)
		sooner(&a, ALARM_IDLE, moment_add(busy ? now_ms : used, sb->sleep_after_ms));
	stuck = stuck_ms(sb, rules);
	if (stuck)
		sooner(&a, ALARM_STUCK, moment_add(busy ? sb->busy_ms : now_ms, stuck));
	return a;
}

const char *alarm_name(enum alarm_kind k)
{
	return names[k];
}

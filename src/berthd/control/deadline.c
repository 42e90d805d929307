#include "core/alarm.h"

#include "berthd/control/deadline.h"

#include "berthd/control/deletion.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/time.h"

static uint64_t now_ms(const struct transition *c)
{
	return c->sb.read_ms + (time_mono_ms() - c->read_mono_ms);
}

struct alarm_rules deadline_rules_of(const struct transition *c)
{
	const struct berthd *b = c->reactor->berthd;
	unsigned divisor = (unsigned)b->settings.timer_divisor;
	uint64_t now = now_ms(c), age = time_mono_ms() - b->began_mono_ms;

	return (struct alarm_rules){
		.divisor = divisor,
		.unwritten_ms = 2 * constant_ms(CONSTANT_USED_FLUSH, divisor),
		.began_ms = now > age ? now - age : 0,
	};
}

/* What this berthd knows of its use, and the record does not yet. */
static void add_what_is_known(struct transition *c)
{
	uint64_t mono = time_mono_ms(), now = now_ms(c), last, busy;

	sandbox_cache_used(c->reactor->berthd->sandboxes, c->sb.id, &last, &busy);
	if (last && last <= mono && now - (mono - last) > c->sb.last_used_ms)
		c->sb.last_used_ms = now - (mono - last);
	if (busy && busy <= mono) {
		c->sb.busy_ms = now - (mono - busy);
		c->sb.last_used_ms = now;
	}
}

static int set_anew(struct job *job, struct store *s, struct err *e)
{
	struct transition *c = container_of(job, struct transition, job);

	return store_sandbox_rearm(s, c->sb.id, c->sb.version,
				   transition_deadline_ms(c, c->sb.state), e);
}

static void on_set(struct transition *c, const struct err *why)
{
	c->done(c, why);
}

void deadline_fire(struct transition *c, transition_fn *done)
{
	struct alarm_rules rules = deadline_rules_of(c);
	struct alarm due;

	c->done = done;
	add_what_is_known(c);
	due = alarm_of(&c->sb, &rules, now_ms(c));
	if (due.kind == ALARM_NONE || due.at_ms > now_ms(c))
		return transition_write(c, set_anew, on_set);
	log_event(LOG_INFO, "sandbox deadline has passed", "sandbox", c->sb.id, "why",
		  alarm_name(due.kind), NULL);
	crash_point("life.alarm-rang");
	if (due.kind == ALARM_AGE) {
		err_set(&c->why, ERR_TIMEOUT, "its lifetime is over");
		return deletion_ask(c, done);
	}
	transition_event(c, EV_SLEEP,
			 due.kind == ALARM_IDLE ? "not used for so long"
						: "busy for so long: stuck",
			 done);
}

#include "core/stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const state_names[STOP_STATE_COUNT] = {
	[STOP_QUARANTINED] = "quarantined",
	[STOP_NONE] = "none",
	[STOP_NEEDED] = "needed",
	[STOP_STOPPING] = "stopping",
};

static const char *const event_names[STOP_EVENT_COUNT] = {
	[STOP_REQUEST] = "request",
	[STOP_FORCE] = "force",
	[STOP_BEGIN] = "begin",
	[STOP_RECHECK] = "recheck",
	[STOP_ABSENT] = "absent",
	[STOP_PRESENT] = "present",
	[STOP_UNKNOWN] = "unknown",
	[STOP_EXPIRED] = "expired",
	[STOP_RELEASE] = "release",
	[STOP_EXHAUSTED] = "exhausted",
};

/* What a step does to the times of the record. */
enum rule {
	RULE_REFUSE, /* a cell the table leaves out */
	RULE_KEEP,   /* the record stays as it is */
	RULE_START,  /* a new ladder, due now */
	RULE_ONCE,   /* one more attempt, due now, and it is the last one again */
	RULE_ATTEMPT,
	RULE_BACKOFF, /* from now, which is when the result was observed */
	RULE_QUARANTINE,
	RULE_LOOK,
	RULE_LOOKED, /* a look that proved nothing: the schedule stands */
	RULE_CLEAR,
};

struct cell {
	enum stop_state to;
	enum stop_action action;
	enum rule rule;
};

/* clang-format off */
#define GO(state, act, rule_)	{ STOP_##state, STOP_ACT_##act, RULE_##rule_ }

static const struct cell cells[STOP_STATE_COUNT][STOP_EVENT_COUNT] = {
	[STOP_NONE] = {
		[STOP_REQUEST]	 = GO(NEEDED,	   TRY,	    START),
		[STOP_FORCE]	 = GO(NEEDED,	   TRY,	    START),
		[STOP_ABSENT]	 = GO(NONE,	   NONE,    KEEP),
		[STOP_PRESENT]	 = GO(NONE,	   NONE,    KEEP),
		[STOP_UNKNOWN]	 = GO(NONE,	   NONE,    KEEP),
		[STOP_EXPIRED]	 = GO(NONE,	   NONE,    KEEP),
		[STOP_EXHAUSTED] = GO(NONE,	   NONE,    KEEP),
		[STOP_RELEASE]	 = GO(NONE,	   NONE,    KEEP),
	},
	[STOP_NEEDED] = {
		[STOP_REQUEST]	 = GO(NEEDED,	   NOTE,    KEEP),	/* the backoff stands */
		[STOP_FORCE]	 = GO(NEEDED,	   NOTE,    KEEP),
		[STOP_BEGIN]	 = GO(STOPPING,	   END,	    ATTEMPT),
		[STOP_ABSENT]	 = GO(NEEDED,	   NONE,    KEEP),	/* of an attempt given up */
		[STOP_PRESENT]	 = GO(NEEDED,	   NONE,    KEEP),
		[STOP_UNKNOWN]	 = GO(NEEDED,	   NONE,    KEEP),
		[STOP_EXPIRED]	 = GO(NEEDED,	   NONE,    KEEP),
		[STOP_EXHAUSTED] = GO(QUARANTINED, ALERT,   QUARANTINE),
		[STOP_RELEASE]	 = GO(NONE,	   DONE,    CLEAR),
	},
	[STOP_STOPPING] = {
		[STOP_REQUEST]	 = GO(STOPPING,	   NOTE,    KEEP),
		[STOP_FORCE]	 = GO(STOPPING,	   NOTE,    KEEP),
		[STOP_ABSENT]	 = GO(NONE,	   DONE,    CLEAR),
		[STOP_PRESENT]	 = GO(NEEDED,	   NONE,    BACKOFF),
		[STOP_UNKNOWN]	 = GO(NEEDED,	   NONE,    BACKOFF),
		[STOP_EXPIRED]	 = GO(NEEDED,	   NONE,    BACKOFF),
		[STOP_EXHAUSTED] = GO(QUARANTINED, ALERT,   QUARANTINE),
		[STOP_RELEASE]	 = GO(NONE,	   DONE,    CLEAR),
	},
	[STOP_QUARANTINED] = {
		[STOP_REQUEST]	 = GO(QUARANTINED, NOTE,    KEEP),
		[STOP_FORCE]	 = GO(NEEDED,	   TRY,	    ONCE),	/* the way out by hand */
		[STOP_RECHECK]	 = GO(QUARANTINED, OBSERVE, LOOK),
		[STOP_ABSENT]	 = GO(NONE,	   DONE,    CLEAR),
		[STOP_PRESENT]	 = GO(QUARANTINED, NONE,    LOOKED),
		[STOP_UNKNOWN]	 = GO(QUARANTINED, NONE,    LOOKED),
		[STOP_EXPIRED]	 = GO(QUARANTINED, NONE,    KEEP),	/* its alarm rechecks */
		[STOP_EXHAUSTED] = GO(QUARANTINED, NONE,    KEEP),
		[STOP_RELEASE]	 = GO(NONE,	   DONE,    CLEAR),
	},
};
#undef GO
/* clang-format on */

static bool is_of_attempt(enum stop_event ev)
{
	return ev == STOP_ABSENT || ev == STOP_PRESENT || ev == STOP_UNKNOWN;
}

static void set_text(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
}

void stop_init(struct stop *s)
{
	*s = (struct stop){ .state = STOP_NONE };
}

static void rule_start(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	if (s->state == STOP_NONE) {
		s->rechecks = 0;
		s->requested_ms = at->now_ms;
		s->last_error[0] = '\0';
	}
	s->attempts = 0;
	s->attempt = 0;
	s->next_ms = at->now_ms;
	s->deadline_ms = 0;
	set_text(s->reason, sizeof(s->reason), in->text);
}

static void rule_once(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	rule_start(s, in, at);
	s->attempts = STOP_ATTEMPTS - 1;
}

static void rule_attempt(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	s->attempts++;
	s->attempt = in->attempt;
	s->deadline_ms = moment_after(at, CONSTANT_STOP_ATTEMPT);
}

static void attempt_over(struct stop *s, const struct stop_input *in)
{
	const char *text = in->event == STOP_EXPIRED ? "the attempt's deadline passed" : in->text;

	s->attempt = 0;
	s->deadline_ms = 0;
	set_text(s->last_error, sizeof(s->last_error), text ? text : event_names[in->event]);
}

static void rule_backoff(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	attempt_over(s, in);
	s->next_ms = moment_add(at->now_ms, constant_backoff_ms(s->attempts, at));
}

static void rule_quarantine(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	attempt_over(s, in);
	s->next_ms = moment_add(at->now_ms, constant_recheck_ms(s->rechecks, at));
}

/* A look a user asked for early leaves the schedule alone. */
static void rule_look(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	s->attempt = in->attempt;
	s->deadline_ms = moment_after(at, CONSTANT_STOP_ATTEMPT);
	if (at->now_ms < s->next_ms)
		return;
	if (s->rechecks < UINT32_MAX)
		s->rechecks++;
	s->next_ms = moment_add(at->now_ms, constant_recheck_ms(s->rechecks, at));
}

static void rule_looked(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	(void)at;
	attempt_over(s, in);
}

static void rule_clear(struct stop *s, const struct stop_input *in, const struct moment *at)
{
	(void)in;
	(void)at;
	stop_init(s);
}

static void (*const rules[])(struct stop *s, const struct stop_input *in,
			     const struct moment *at) = {
	[RULE_START] = rule_start,
	[RULE_ONCE] = rule_once,
	[RULE_ATTEMPT] = rule_attempt,
	[RULE_BACKOFF] = rule_backoff,
	[RULE_QUARANTINE] = rule_quarantine,
	[RULE_LOOK] = rule_look,
	[RULE_LOOKED] = rule_looked,
	[RULE_CLEAR] = rule_clear,
};

/* The event as it counts: the last attempt that failed is also the end of attempts. */
static enum stop_event counted(const struct stop *s, enum stop_event ev)
{
	bool failed = ev == STOP_PRESENT || ev == STOP_UNKNOWN || ev == STOP_EXPIRED;

	if (s->state == STOP_STOPPING && failed && s->attempts >= STOP_ATTEMPTS)
		return STOP_EXHAUSTED;
	return ev;
}

/* Facts that come too late, or of a timer that ran too early. */
static bool is_stale(const struct stop *s, const struct stop_input *in, const struct moment *at)
{
	if (is_of_attempt(in->event))
		return in->attempt == 0 || in->attempt != s->attempt;
	if (in->event == STOP_EXPIRED)
		return at->now_ms < s->deadline_ms;
	return false;
}

/* Jitter adds less than the delay itself. */
bool stop_is_misdated(const struct stop *s, const struct moment *at)
{
	uint64_t longest = 2 * constant_ms(CONSTANT_STOP_BACKOFF_5, at->divisor);

	return s->state == STOP_NEEDED && s->next_ms > moment_add(at->now_ms, longest);
}

static int refuse_early(const struct stop *s, const struct stop_input *in,
			const struct moment *at, struct err *e)
{
	if (in->event != STOP_BEGIN && in->event != STOP_RECHECK)
		return 0;
	if (in->attempt == 0)
		return err_set(e, ERR_INVALID, "an attempt needs an id that is not 0");
	if (in->event == STOP_BEGIN && at->now_ms < s->next_ms && !stop_is_misdated(s, at))
		return err_set(e, ERR_CONFLICT, "the next attempt to stop it is in %" PRIu64 " ms",
			       s->next_ms - at->now_ms);
	if (in->event == STOP_RECHECK && s->attempt && at->now_ms < s->deadline_ms &&
	    at->now_ms < s->next_ms)
		return err_set(e, ERR_CONFLICT, "it is being looked at already");
	return 0;
}

int stop_apply(struct stop *s, const struct stop_input *in, const struct moment *at,
	       enum stop_action *ret, struct err *e)
{
	const struct cell *c = &cells[s->state][counted(s, in->event)];

	if (c->rule == RULE_REFUSE)
		return err_set(e, ERR_CONFLICT, "cannot %s a stop that is %s",
			       event_names[in->event], state_names[s->state]);
	if (refuse_early(s, in, at, e) < 0)
		return -1;
	if (is_stale(s, in, at)) {
		*ret = STOP_ACT_NONE;
		return 0;
	}
	if (c->rule != RULE_KEEP)
		rules[c->rule](s, in, at);
	s->state = c->to;
	*ret = c->action;
	return 0;
}

uint64_t stop_deadline_ms(const struct stop *s)
{
	switch (s->state) {
	case STOP_STOPPING:
		return s->deadline_ms;
	case STOP_NEEDED:
	case STOP_QUARANTINED:
		return s->next_ms;
	default:
		return NEVER;
	}
}

bool stop_due(const struct stop *s, enum stop_event *ret)
{
	static const enum stop_event due[STOP_STATE_COUNT] = {
		[STOP_NEEDED] = STOP_BEGIN,
		[STOP_STOPPING] = STOP_EXPIRED,
		[STOP_QUARANTINED] = STOP_RECHECK,
	};

	if (s->state == STOP_NONE)
		return false;
	*ret = due[s->state];
	return true;
}

const char *stop_state_name(enum stop_state s)
{
	return state_names[s];
}

const char *stop_event_name(enum stop_event ev)
{
	return event_names[ev];
}

enum stop_state stop_state_by_name(const char *name)
{
	for (int s = 0; s < STOP_STATE_COUNT; s++)
		if (strcmp(state_names[s], name) == 0)
			return (enum stop_state)s;
	return STOP_QUARANTINED;
}

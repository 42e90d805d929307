#include "core/lease.h"

#include <stdio.h>
#include <string.h>

static const char *const state_names[LEASE_STATE_COUNT] = {
	[LEASE_QUARANTINED] = "quarantined",
	[LEASE_NONE] = "none",
	[LEASE_STARTING] = "starting",
	[LEASE_READY] = "ready",
	[LEASE_BUSY] = "busy",
	[LEASE_WARM] = "warm",
	[LEASE_STOP_NEEDED] = "stop_needed",
	[LEASE_STOPPING] = "stopping",
};

static const char *const event_names[LEASE_EVENT_COUNT] = {
	[LEASE_ALLOCATE] = "allocate",
	[LEASE_REUSE] = "reuse",
	[LEASE_STOP] = "stop",
	[LEASE_FORCE] = "force",
	[LEASE_BEGIN] = "begin",
	[LEASE_RECHECK] = "recheck",
	[LEASE_VERIFIED] = "verified",
	[LEASE_ACCEPTED] = "accepted",
	[LEASE_SETTLED] = "settled",
	[LEASE_OWNED_ABSENT] = "owned_absent",
	[LEASE_TIMEOUT] = "timeout",
	[LEASE_ABSENT] = "absent",
	[LEASE_PRESENT] = "present",
	[LEASE_UNKNOWN] = "unknown",
	[LEASE_PROVEN] = "proven",
	[LEASE_EXHAUSTED] = "exhausted",
};

static const char *const reason_names[LEASE_REASON_COUNT] = {
	[LEASE_REASON_NONE] = "none",
	[LEASE_READINESS_FAILED] = "readiness-failed",
	[LEASE_STARTUP_FAILED] = "startup-failed",
	[LEASE_UNHEALTHY] = "unhealthy-wrapper",
	[LEASE_TERMINAL_FAILED] = "terminal-failed",
	[LEASE_TERMINAL_COMPLETED] = "terminal-completed",
	[LEASE_TERMINAL_ENDED] = "terminal-ended",
	[LEASE_TERMINAL_INTERRUPTED] = "terminal-interrupted",
	[LEASE_IDLE_TIMEOUT] = "idle-timeout",
	[LEASE_KEEP_WARM_EXPIRED] = "keep-warm-expired",
	[LEASE_USER_INTERRUPT] = "user-interrupt",
	[LEASE_SESSION_DELETE] = "session-delete",
	[LEASE_UNEXPECTED_WRAPPER] = "unexpected-wrapper",
	[LEASE_OBSERVATION_FAILED] = "observation-failed",
};

/* What a step does to the record. */
enum rule {
	RULE_REFUSE, /* a cell the table leaves out */
	RULE_KEEP,
	RULE_ALLOCATE,
	RULE_STARTUP, /* the deadline of a start; keep_warm_ms is kept until it is verified */
	RULE_READY,
	RULE_WATCH, /* until the next look at the work there should be */
	RULE_WARM,
	RULE_CLEAR,
	RULE_EXPIRE, /* stop it, or see that it is working; see expire() */
	RULE_LADDER, /* the ladder decides state, action and times */
};

struct cell {
	enum lease_state to;
	enum lease_action action;
	enum rule rule;
};

/* clang-format off */
#define GO(state, act, rule_)	{ LEASE_##state, LEASE_ACT_##act, RULE_##rule_ }
#define STAY(state)		GO(state, NONE, KEEP)
#define LADDER			{ .rule = RULE_LADDER }
/* Answers of attempts there are none of. */
#define NO_ATTEMPT(state) \
		[LEASE_ABSENT]	  = STAY(state), [LEASE_PRESENT]   = STAY(state), \
		[LEASE_UNKNOWN]	  = STAY(state), [LEASE_EXHAUSTED] = STAY(state)
/* Facts of an instance that is being ended: the ladder will observe. */
#define ENDING(state) \
		[LEASE_VERIFIED] = STAY(state), [LEASE_ACCEPTED]     = STAY(state), \
		[LEASE_SETTLED]	 = STAY(state), [LEASE_OWNED_ABSENT] = STAY(state), \
		[LEASE_STOP]	= LADDER, [LEASE_FORCE]	  = LADDER, [LEASE_BEGIN]   = LADDER, \
		[LEASE_RECHECK] = LADDER, [LEASE_TIMEOUT] = LADDER, [LEASE_ABSENT]  = LADDER, \
		[LEASE_PRESENT] = LADDER, [LEASE_UNKNOWN] = LADDER, [LEASE_EXHAUSTED] = LADDER, \
		[LEASE_PROVEN] = LADDER

static const struct cell cells[LEASE_STATE_COUNT][LEASE_EVENT_COUNT] = {
	[LEASE_NONE] = {
		[LEASE_ALLOCATE]     = GO(STARTING, SPAWN,     ALLOCATE),	/* L1 */
		[LEASE_STOP]	     = LADDER,					/* L7 */
		[LEASE_FORCE]	     = LADDER,
		[LEASE_VERIFIED]     = STAY(NONE),
		[LEASE_ACCEPTED]     = STAY(NONE),
		[LEASE_SETTLED]	     = STAY(NONE),
		[LEASE_OWNED_ABSENT] = STAY(NONE),
		[LEASE_TIMEOUT]	     = STAY(NONE),
		[LEASE_PROVEN]	     = STAY(NONE),
		NO_ATTEMPT(NONE),
	},
	[LEASE_STARTING] = {
		[LEASE_REUSE]	     = GO(STARTING, USE,       KEEP),
		[LEASE_STOP]	     = LADDER,
		[LEASE_FORCE]	     = LADDER,
		[LEASE_VERIFIED]     = GO(READY,    NONE,      READY),		/* L2 */
		[LEASE_ACCEPTED]     = GO(BUSY,	    SUPERVISE, WATCH),		/* L3 */
		[LEASE_SETTLED]	     = GO(WARM,	    NONE,      WARM),		/* X6 */
		[LEASE_OWNED_ABSENT] = GO(NONE,	    DRAIN,     CLEAR),		/* L6 */
		[LEASE_TIMEOUT]	     = GO(BUSY,	    SUPERVISE, EXPIRE),		/* L3' or L7 */
		[LEASE_PROVEN]	     = GO(NONE,	    DRAIN,     CLEAR),
		NO_ATTEMPT(STARTING),
	},
	[LEASE_READY] = {
		[LEASE_REUSE]	     = GO(READY,    USE,       KEEP),
		[LEASE_STOP]	     = LADDER,
		[LEASE_FORCE]	     = LADDER,
		[LEASE_VERIFIED]     = STAY(READY),
		[LEASE_ACCEPTED]     = GO(BUSY,	    SUPERVISE, WATCH),		/* L3 */
		[LEASE_SETTLED]	     = GO(WARM,	    NONE,      WARM),
		[LEASE_OWNED_ABSENT] = GO(NONE,	    DRAIN,     CLEAR),
		[LEASE_TIMEOUT]	     = GO(BUSY,	    SUPERVISE, EXPIRE),		/* X7 or L7 */
		[LEASE_PROVEN]	     = GO(NONE,	    DRAIN,     CLEAR),
		NO_ATTEMPT(READY),
	},
	[LEASE_BUSY] = {
		[LEASE_REUSE]	     = GO(BUSY,	    USE,       KEEP),
		[LEASE_STOP]	     = LADDER,
		[LEASE_FORCE]	     = LADDER,
		[LEASE_VERIFIED]     = STAY(BUSY),
		[LEASE_ACCEPTED]     = STAY(BUSY),
		[LEASE_SETTLED]	     = GO(WARM,	    NONE,      WARM),		/* L4 */
		[LEASE_OWNED_ABSENT] = GO(NONE,	    DRAIN,     CLEAR),
		[LEASE_TIMEOUT]	     = GO(BUSY,	    SUPERVISE, EXPIRE),		/* or X10: warm */
		[LEASE_PROVEN]	     = GO(NONE,	    DRAIN,     CLEAR),
		NO_ATTEMPT(BUSY),
	},
	[LEASE_WARM] = {
		[LEASE_REUSE]	     = GO(STARTING, USE,       STARTUP),	/* L5 */
		[LEASE_STOP]	     = LADDER,
		[LEASE_FORCE]	     = LADDER,
		[LEASE_VERIFIED]     = STAY(WARM),
		[LEASE_ACCEPTED]     = GO(BUSY,	    SUPERVISE, WATCH),		/* L5 was lost */
		[LEASE_SETTLED]	     = STAY(WARM),
		[LEASE_OWNED_ABSENT] = GO(NONE,	    DRAIN,     CLEAR),
		[LEASE_TIMEOUT]	     = GO(BUSY,	    SUPERVISE, EXPIRE),
		[LEASE_PROVEN]	     = GO(NONE,	    DRAIN,     CLEAR),
		NO_ATTEMPT(WARM),
	},
	[LEASE_STOP_NEEDED] = { ENDING(STOP_NEEDED) },
	[LEASE_STOPPING]    = { ENDING(STOPPING) },
	[LEASE_QUARANTINED] = { ENDING(QUARANTINED) },
};

static const enum stop_event to_ladder[LEASE_EVENT_COUNT] = {
	[LEASE_STOP]	= STOP_REQUEST,	[LEASE_FORCE]	  = STOP_FORCE,
	[LEASE_BEGIN]	= STOP_BEGIN,	[LEASE_RECHECK]	  = STOP_RECHECK,
	[LEASE_TIMEOUT] = STOP_EXPIRED,	[LEASE_ABSENT]	  = STOP_ABSENT,
	[LEASE_PRESENT] = STOP_PRESENT,	[LEASE_UNKNOWN]	  = STOP_UNKNOWN,
	[LEASE_PROVEN] = STOP_RELEASE,	[LEASE_EXHAUSTED] = STOP_EXHAUSTED,
};

static const enum lease_action of_ladder[STOP_ACTION_COUNT] = {
	[STOP_ACT_NONE]	= LEASE_ACT_NONE,	[STOP_ACT_NOTE]	   = LEASE_ACT_NOTE,
	[STOP_ACT_TRY]	= LEASE_ACT_TRY,	[STOP_ACT_END]	   = LEASE_ACT_END,
	[STOP_ACT_DONE]	= LEASE_ACT_DRAIN,	[STOP_ACT_OBSERVE] = LEASE_ACT_OBSERVE,
	[STOP_ACT_ALERT] = LEASE_ACT_ALERT,
};

static const enum lease_state state_of_ladder[STOP_STATE_COUNT] = {
	[STOP_NONE]	= LEASE_NONE,		[STOP_NEEDED]	   = LEASE_STOP_NEEDED,
	[STOP_STOPPING]	= LEASE_STOPPING,	[STOP_QUARANTINED] = LEASE_QUARANTINED,
};
/* clang-format on */

static bool owns(const struct lease *l)
{
	return l->state >= LEASE_STARTING && l->state <= LEASE_WARM;
}

static bool same_instance(const struct instance *a, const struct instance *b)
{
	return a->generation != 0 && a->generation == b->generation && strcmp(a->id, b->id) == 0;
}

void lease_init(struct lease *l)
{
	*l = (struct lease){ .state = LEASE_NONE, .next_generation = 1 };
	stop_init(&l->stop);
}

static void forget_instance(struct lease *l)
{
	l->instance = (struct instance){ 0 };
	l->session_wide = false;
	l->reason = LEASE_REASON_NONE;
	l->deadline_ms = 0;
	l->keep_warm_ms = 0;
}

static int ladder(struct lease *l, const struct lease_input *in, const struct moment *at,
		  enum lease_action *action, struct err *e)
{
	bool asks = in->event == LEASE_STOP || in->event == LEASE_FORCE;
	struct stop_input s = { .event = to_ladder[in->event],
				.attempt = in->attempt,
				.text = asks ? reason_names[in->reason] : in->text };
	enum stop_state before = l->stop.state;
	enum stop_action act;

	if (stop_apply(&l->stop, &s, at, &act, e) < 0)
		return -1;
	if (asks && before == STOP_NONE)
		l->reason = in->reason;
	if (asks && (in->session_wide || l->instance.generation == 0))
		l->session_wide = true;
	if (asks && in->seen_generation >= l->next_generation &&
	    in->seen_generation < LEASE_SEEN_MAX)
		l->next_generation = in->seen_generation + 1;
	l->deadline_ms = 0;
	l->state = state_of_ladder[l->stop.state];
	if (l->state == LEASE_NONE)
		forget_instance(l);
	*action = of_ladder[act];
	return 0;
}

/* Of a look that comes late the host was away, and the wrapper may have been frozen with it. */
static bool is_silent(const struct lease *l, const struct lease_input *in, const struct moment *at)
{
	uint64_t late = moment_add(l->deadline_ms, constant_ms(CONSTANT_PONG, at->divisor));

	return l->state == LEASE_BUSY && at->now_ms <= late &&
	       in->silent_ms >= constant_ms(CONSTANT_NO_OUTPUT, at->divisor);
}

/* It ends because a step took too long: which, and its limit. One kept warm did nothing wrong. */
static int end_late(struct lease *l, enum lease_reason reason, const struct moment *at,
		    enum lease_action *action, struct err *e)
{
	static const struct {
		enum constant limit;
		const char *text;
	} steps[LEASE_REASON_COUNT] = {
		[LEASE_STARTUP_FAILED] = { CONSTANT_STARTUP, "it was not ready after" },
		[LEASE_IDLE_TIMEOUT] = { CONSTANT_READY_ONLY, "it was ready without work for" },
		[LEASE_UNHEALTHY] = { CONSTANT_NO_OUTPUT, "it was at work and silent for" },
	};
	struct lease_input stop = { .event = LEASE_STOP, .reason = reason };

	if (ladder(l, &stop, at, action, e) < 0)
		return -1;
	if (steps[reason].text)
		snprintf(l->stop.last_error, sizeof(l->stop.last_error), "%s %llu ms",
			 steps[reason].text,
			 (unsigned long long)constant_ms(steps[reason].limit, at->divisor));
	return 0;
}

/* The deadline of an owned state: a lost write to repair, or the end. */
static int expire(struct lease *l, const struct lease_input *in, const struct moment *at,
		  enum lease_action *action, struct err *e)
{
	static const enum lease_reason reasons[LEASE_STATE_COUNT] = {
		[LEASE_STARTING] = LEASE_STARTUP_FAILED,
		[LEASE_READY] = LEASE_IDLE_TIMEOUT,
		[LEASE_WARM] = LEASE_KEEP_WARM_EXPIRED,
	};

	if (in->working && is_silent(l, in, at))
		return end_late(l, LEASE_UNHEALTHY, at, action, e);
	if (in->working) {
		l->state = LEASE_BUSY;
		l->deadline_ms = moment_add(moment_after(at, CONSTANT_PING),
					    constant_ms(CONSTANT_PONG, at->divisor));
		return 0;
	}
	if (l->state != LEASE_BUSY)
		return end_late(l, reasons[l->state], at, action, e);
	l->state = LEASE_WARM;
	l->deadline_ms = moment_after(at, CONSTANT_KEEP_WARM);
	*action = LEASE_ACT_NONE;
	return 0;
}

static void allocate(struct lease *l, const struct lease_input *in, const struct moment *at)
{
	forget_instance(l);
	l->instance = in->instance;
	l->instance.generation = l->next_generation++;
	l->deadline_ms = moment_after(at, CONSTANT_STARTUP);
}

static void follow(struct lease *l, enum rule rule, const struct lease_input *in,
		   const struct moment *at)
{
	switch (rule) {
	case RULE_ALLOCATE:
		allocate(l, in, at);
		return;
	case RULE_STARTUP:
		l->keep_warm_ms = l->deadline_ms;
		l->deadline_ms = moment_after(at, CONSTANT_STARTUP);
		return;
	case RULE_READY:
		l->keep_warm_ms = 0;
		l->deadline_ms = moment_after(at, CONSTANT_READY_ONLY);
		return;
	case RULE_WATCH:
		l->keep_warm_ms = 0;
		l->deadline_ms = moment_add(moment_after(at, CONSTANT_PING),
					    constant_ms(CONSTANT_PONG, at->divisor));
		return;
	case RULE_WARM:
		l->keep_warm_ms = 0;
		l->deadline_ms = moment_after(at, CONSTANT_KEEP_WARM);
		return;
	case RULE_CLEAR:
		forget_instance(l);
		return;
	default:
		return;
	}
}

/* Facts of another instance, and timers that ran early. */
static bool is_stale(const struct lease *l, const struct lease_input *in, const struct moment *at)
{
	if (in->event >= LEASE_VERIFIED && in->event <= LEASE_OWNED_ABSENT)
		return !same_instance(&in->instance, &l->instance);
	return in->event == LEASE_TIMEOUT && owns(l) && at->now_ms < l->deadline_ms;
}

static int refuse(const struct lease *l, const struct lease_input *in, struct err *e)
{
	if (cells[l->state][in->event].rule == RULE_REFUSE)
		return err_set(e, ERR_CONFLICT, "cannot %s a wrapper whose lease is %s",
			       event_names[in->event], state_names[l->state]);
	if (in->event == LEASE_ALLOCATE && !in->instance.id[0])
		return err_set(e, ERR_INVALID, "an instance needs an id");
	if (in->event == LEASE_REUSE && !same_instance(&in->instance, &l->instance))
		return err_set(e, ERR_CONFLICT, "the lease is of another instance");
	return 0;
}

int lease_apply(struct lease *l, const struct lease_input *in, const struct moment *at,
		enum lease_action *ret, struct err *e)
{
	const struct cell *c = &cells[l->state][in->event];
	enum lease_action action = c->action;

	if (refuse(l, in, e) < 0)
		return -1;
	if (is_stale(l, in, at)) {
		*ret = LEASE_ACT_NONE;
		return 0;
	}
	if (c->rule == RULE_LADDER)
		return ladder(l, in, at, ret, e);
	if (c->rule == RULE_EXPIRE) {
		if (expire(l, in, at, &action, e) < 0)
			return -1;
	} else {
		follow(l, c->rule, in, at);
		l->state = c->to;
	}
	*ret = action;
	return 0;
}

static struct lease_verdict stop_verdict(const struct wrapper_observation *o)
{
	bool unknown = o->seen != WRAPPER_PRESENT;
	struct lease_input stop = {
		.event = LEASE_STOP,
		.session_wide = !unknown,
		.reason = unknown ? LEASE_OBSERVATION_FAILED : LEASE_UNEXPECTED_WRAPPER,
		.seen_generation = o->max_generation,
	};

	return (struct lease_verdict){ .kind = LEASE_DO_STOP, .stop = stop };
}

struct lease_verdict lease_authorize(const struct lease *l, const struct wrapper_observation *o)
{
	if (!owns(l) && l->state != LEASE_NONE)
		return (struct lease_verdict){ .kind = LEASE_BLOCKED,
					       .retry_ms = lease_deadline_ms(l) };
	if (o->seen == WRAPPER_ABSENT)
		return (struct lease_verdict){
			.kind = owns(l) ? LEASE_DO_RENEW : LEASE_DO_ALLOCATE,
		};
	if (owns(l) && o->seen == WRAPPER_PRESENT && o->count == 1 &&
	    same_instance(&o->instance, &l->instance))
		return (struct lease_verdict){ .kind = LEASE_DO_REUSE };
	return stop_verdict(o);
}

uint64_t lease_deadline_ms(const struct lease *l)
{
	if (l->state == LEASE_NONE)
		return NEVER;
	return owns(l) ? l->deadline_ms : stop_deadline_ms(&l->stop);
}

bool lease_due(const struct lease *l, enum lease_event *ret)
{
	static const enum lease_event due[LEASE_STATE_COUNT] = {
		[LEASE_QUARANTINED] = LEASE_RECHECK,
		[LEASE_STARTING] = LEASE_TIMEOUT,
		[LEASE_READY] = LEASE_TIMEOUT,
		[LEASE_BUSY] = LEASE_TIMEOUT,
		[LEASE_WARM] = LEASE_TIMEOUT,
		[LEASE_STOP_NEEDED] = LEASE_BEGIN,
		[LEASE_STOPPING] = LEASE_TIMEOUT,
	};

	if (l->state == LEASE_NONE)
		return false;
	*ret = due[l->state];
	return true;
}

const char *lease_state_name(enum lease_state s)
{
	return state_names[s];
}

const char *lease_event_name(enum lease_event ev)
{
	return event_names[ev];
}

const char *lease_reason_name(enum lease_reason r)
{
	return reason_names[r];
}

enum lease_state lease_state_by_name(const char *name)
{
	for (int s = 0; s < LEASE_STATE_COUNT; s++)
		if (strcmp(state_names[s], name) == 0)
			return (enum lease_state)s;
	return LEASE_QUARANTINED;
}

enum lease_reason lease_reason_by_name(const char *name)
{
	for (int r = 0; r < LEASE_REASON_COUNT; r++)
		if (strcmp(reason_names[r], name) == 0)
			return (enum lease_reason)r;
	return LEASE_REASON_NONE;
}

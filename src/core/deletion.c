#include "core/deletion.h"

#include <string.h>

static const char *const state_names[DELETION_STATE_COUNT] = {
	[DELETION_ACTIVE] = "active",
	[DELETION_PENDING] = "pending",
	[DELETION_STOPPING] = "stopping",
	[DELETION_RELEASING] = "releasing",
	[DELETION_TOMBSTONED] = "tombstoned",
};

static const char *const event_names[DELETION_EVENT_COUNT] = {
	[DELETION_REQUEST] = "request",
	[DELETION_USE] = "use",
	[DELETION_BEGIN] = "begin",
	[DELETION_PROVEN] = "proven",
	[DELETION_ENDED] = "ended",
	[DELETION_REMOVED] = "removed",
	[DELETION_SEEN] = "seen",
};

static const char *const action_names[DELETION_ACTION_COUNT] = {
	[DELETION_ACT_NONE] = "nothing",
	[DELETION_ACT_NOTE] = "note",
	[DELETION_ACT_BEGIN] = "begin",
	[DELETION_ACT_TRY] = "try",
	[DELETION_ACT_END] = "end",
	[DELETION_ACT_DESTROY] = "destroy",
	[DELETION_ACT_OBSERVE] = "observe",
	[DELETION_ACT_ALERT] = "alert",
	[DELETION_ACT_STOPPED] = "stopped",
	[DELETION_ACT_ERASE] = "erase",
	[DELETION_ACT_RECEIPT] = "receipt",
};

/* What a step does to the ladder and to the times; deadlines follow from those. */
enum rule {
	RULE_REFUSE, /* the cell nobody wrote */
	RULE_KEEP,
	RULE_INTENT, /* when, and whether by force */
	RULE_INSIST, /* asked again: force may be added, nothing else */
	RULE_ASK,    /* ask the ladder; if it is being climbed, that stands */
	RULE_CLEAR,  /* nothing left to stop */
	RULE_AGAIN,  /* absent: the ladder once more, for the rest */
	RULE_VERIFY, /* all gone: when */
};

struct cell {
	enum deletion_state to;
	enum deletion_action action;
	enum rule rule;
};

/* clang-format off */
#define GO(state, act, rule_)	{ DELETION_##state, DELETION_ACT_##act, RULE_##rule_ }

static const struct cell cells[DELETION_STATE_COUNT][DELETION_EVENT_COUNT] = {
	[DELETION_ACTIVE] = {
		[DELETION_REQUEST] = GO(PENDING,    BEGIN,   INTENT),
		[DELETION_USE]	   = GO(ACTIVE,	    NONE,    KEEP),
		[DELETION_PROVEN]  = GO(ACTIVE,	    STOPPED, KEEP),
		[DELETION_ENDED]   = GO(ACTIVE,	    STOPPED, CLEAR),
		[DELETION_REMOVED] = GO(ACTIVE,	    STOPPED, CLEAR),	/* its owner must see */
		[DELETION_SEEN]	   = GO(ACTIVE,	    NONE,    KEEP),
	},
	[DELETION_PENDING] = {
		[DELETION_REQUEST] = GO(PENDING,    NOTE,    INSIST),
		[DELETION_BEGIN]   = GO(STOPPING,   TRY,     ASK),
		[DELETION_PROVEN]  = GO(PENDING,    BEGIN,   KEEP),	/* of a stop before */
		[DELETION_ENDED]   = GO(PENDING,    BEGIN,   CLEAR),
		[DELETION_REMOVED] = GO(TOMBSTONED, ERASE,   VERIFY),
		[DELETION_SEEN]	   = GO(PENDING,    NONE,    KEEP),
	},
	[DELETION_STOPPING] = {
		[DELETION_REQUEST] = GO(STOPPING,   NOTE,    INSIST),
		[DELETION_PROVEN]  = GO(RELEASING,  TRY,     AGAIN),
		[DELETION_ENDED]   = GO(RELEASING,  TRY,     AGAIN),
		[DELETION_REMOVED] = GO(TOMBSTONED, ERASE,   VERIFY),
		[DELETION_SEEN]	   = GO(STOPPING,   NONE,    KEEP),
	},
	[DELETION_RELEASING] = {
		[DELETION_REQUEST] = GO(RELEASING,  NOTE,    INSIST),
		[DELETION_PROVEN]  = GO(TOMBSTONED, ERASE,   VERIFY),
		[DELETION_ENDED]   = GO(RELEASING,  NONE,    KEEP),	/* the disk is left */
		[DELETION_REMOVED] = GO(TOMBSTONED, ERASE,   VERIFY),
		[DELETION_SEEN]	   = GO(RELEASING,  NONE,    KEEP),	/* destroying ends it */
	},
	[DELETION_TOMBSTONED] = {
		[DELETION_REQUEST] = GO(TOMBSTONED, RECEIPT, KEEP),
		[DELETION_PROVEN]  = GO(TOMBSTONED, NONE,    KEEP),
		[DELETION_ENDED]   = GO(TOMBSTONED, NONE,    KEEP),
		[DELETION_REMOVED] = GO(TOMBSTONED, NONE,    KEEP),
		[DELETION_SEEN]	   = GO(TOMBSTONED, DESTROY, KEEP),	/* a ghost */
	},
};
#undef GO

/* What the ladder's action is called here; STOP_ACT_DONE is DELETION_PROVEN. */
static const enum deletion_action of_ladder[STOP_ACTION_COUNT] = {
	[STOP_ACT_NONE]		= DELETION_ACT_NONE,
	[STOP_ACT_NOTE]		= DELETION_ACT_NOTE,
	[STOP_ACT_TRY]		= DELETION_ACT_TRY,
	[STOP_ACT_END]		= DELETION_ACT_END,
	[STOP_ACT_OBSERVE]	= DELETION_ACT_OBSERVE,
	[STOP_ACT_ALERT]	= DELETION_ACT_ALERT,
};
/* clang-format on */

void deletion_init(struct deletion *d, uint64_t generation)
{
	*d = (struct deletion){ .state = DELETION_ACTIVE, .generation = generation };
	stop_init(&d->stop);
}

/* Only by force does a deletion leave a quarantine. */
static int ask_ladder(struct deletion *d, const char *why, const struct moment *at,
		      enum deletion_action *action, struct err *e)
{
	struct stop_input in = { .event = d->force ? STOP_FORCE : STOP_REQUEST, .text = why };
	enum stop_action act;

	if (stop_apply(&d->stop, &in, at, &act, e) < 0)
		return -1;
	*action = of_ladder[act];
	return 0;
}

/* Force that comes later reaches a ladder that was given up; any other stands. */
static int insist(struct deletion *d, const struct deletion_input *in, const struct moment *at,
		  enum deletion_action *action, struct err *e)
{
	if (!in->force)
		return 0;
	d->force = true;
	if (d->state == DELETION_PENDING || d->stop.state != STOP_QUARANTINED)
		return 0;
	return ask_ladder(d, in->text, at, action, e);
}

static int follow(struct deletion *d, enum rule rule, const struct deletion_input *in,
		  const struct moment *at, enum deletion_action *action, struct err *e)
{
	switch (rule) {
	case RULE_INTENT:
		d->force = in->force;
		d->requested_ms = at->now_ms;
		return 0;
	case RULE_INSIST:
		return insist(d, in, at, action, e);
	case RULE_ASK:
		return ask_ladder(d, "deletion", at, action, e);
	case RULE_CLEAR:
		stop_init(&d->stop);
		return 0;
	case RULE_AGAIN:
		stop_init(&d->stop);
		return ask_ladder(d, "deletion", at, action, e);
	case RULE_VERIFY:
		stop_init(&d->stop);
		d->verified_ms = at->now_ms;
		return 0;
	default:
		return 0;
	}
}

static int refuse(const struct deletion *d, const struct deletion_input *in, struct err *e)
{
	if (d->state == DELETION_ACTIVE && in->event == DELETION_USE &&
	    d->stop.state != STOP_NONE)
		return err_set(e, ERR_CONFLICT, "it is being stopped (%s)",
			       stop_state_name(d->stop.state));
	if (d->state == DELETION_ACTIVE && in->event == DELETION_REQUEST && in->unsaved &&
	    !in->force)
		return err_set(e, ERR_CONFLICT, "it holds work that nobody has fetched yet");
	if (cells[d->state][in->event].rule != RULE_REFUSE)
		return 0;
	if (in->event == DELETION_USE && d->state == DELETION_TOMBSTONED)
		return err_set(e, ERR_CONFLICT, "it was deleted");
	if (in->event == DELETION_USE)
		return err_set(e, ERR_CONFLICT, "its deletion is pending");
	return err_set(e, ERR_CONFLICT, "cannot %s a deletion that is %s",
		       event_names[in->event], state_names[d->state]);
}

int deletion_apply(struct deletion *d, const struct deletion_input *in, const struct moment *at,
		   enum deletion_action *ret, struct err *e)
{
	const struct cell *c = &cells[d->state][in->event];
	struct deletion next = *d;
	enum deletion_action action = c->action;

	if (refuse(d, in, e) < 0)
		return -1;
	if (follow(&next, c->rule, in, at, &action, e) < 0)
		return -1;
	next.state = c->to;
	*d = next;
	*ret = action;
	return 0;
}

static int told(struct deletion *d, enum deletion_event event, const struct moment *at,
		enum deletion_action *ret, struct err *e)
{
	struct deletion_input in = { .event = event };

	return deletion_apply(d, &in, at, ret, e);
}

int deletion_ladder(struct deletion *d, const struct stop_input *in, const struct moment *at,
		    enum deletion_action *ret, struct err *e)
{
	enum stop_action act;

	if (in->event == STOP_RELEASE)
		return told(d, DELETION_ENDED, at, ret, e);
	if (d->state == DELETION_TOMBSTONED && !stop_event_is_fact(in->event))
		return err_set(e, ERR_CONFLICT, "it was deleted");
	if (stop_apply(&d->stop, in, at, &act, e) < 0)
		return -1;
	if (act == STOP_ACT_DONE)
		return told(d, DELETION_PROVEN, at, ret, e);
	*ret = of_ladder[act];
	if (act == STOP_ACT_END && d->state == DELETION_RELEASING)
		*ret = DELETION_ACT_DESTROY;
	return 0;
}

uint64_t deletion_deadline_ms(const struct deletion *d)
{
	if (d->state == DELETION_PENDING)
		return d->requested_ms;
	return d->state == DELETION_TOMBSTONED ? NEVER : stop_deadline_ms(&d->stop);
}

int deletion_tick(struct deletion *d, uint64_t attempt, const struct moment *at,
		  enum deletion_action *ret, struct err *e)
{
	struct stop_input in = { .attempt = attempt };

	if (at->now_ms < deletion_deadline_ms(d) || deletion_deadline_ms(d) == NEVER) {
		*ret = DELETION_ACT_NONE;
		return 0;
	}
	if (d->state == DELETION_PENDING || !stop_due(&d->stop, &in.event))
		return told(d, DELETION_BEGIN, at, ret, e);
	return deletion_ladder(d, &in, at, ret, e);
}

bool deletion_event_is_fact(enum deletion_event ev)
{
	return ev >= DELETION_PROVEN;
}

const char *deletion_state_name(enum deletion_state s)
{
	return state_names[s];
}

const char *deletion_event_name(enum deletion_event ev)
{
	return event_names[ev];
}

const char *deletion_action_name(enum deletion_action a)
{
	return action_names[a];
}

bool deletion_state_by_name(const char *name, enum deletion_state *ret)
{
	for (int s = 0; s < DELETION_STATE_COUNT; s++) {
		if (strcmp(state_names[s], name) != 0)
			continue;
		*ret = (enum deletion_state)s;
		return true;
	}
	return false;
}

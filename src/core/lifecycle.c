#include "core/lifecycle.h"

#include <string.h>

static const char *const state_names[SANDBOX_STATE_COUNT] = {
	[SANDBOX_CREATING] = "creating",
	[SANDBOX_READY] = "ready",
	[SANDBOX_FALLING_ASLEEP] = "falling_asleep",
	[SANDBOX_ASLEEP] = "asleep",
	[SANDBOX_WAKING] = "waking",
	[SANDBOX_DELETING] = "deleting",
	[SANDBOX_FAILED] = "failed",
	[SANDBOX_GONE] = "gone",
};

static const char *const event_names[SANDBOX_EVENT_COUNT] = {
	[EV_UP] = "up",
	[EV_BROKEN] = "broken",
	[EV_SEEN] = "seen",
	[EV_ABSENT] = "absent",
	[EV_REMOVED] = "removed",
	[EV_TIMEOUT] = "timeout",
	[EV_USE] = "use",
	[EV_SLEEP] = "sleep",
	[EV_WAKE] = "wake",
	[EV_DELETE] = "delete",
};

/* A state that waits for something has a deadline; the other states wait for nothing. */
static const enum constant deadlines[SANDBOX_STATE_COUNT] = {
	[SANDBOX_CREATING] = CONSTANT_ORPHAN,
	[SANDBOX_READY] = CONSTANT_COUNT,
	[SANDBOX_FALLING_ASLEEP] = CONSTANT_STOP_ATTEMPT,
	[SANDBOX_ASLEEP] = CONSTANT_COUNT,
	[SANDBOX_WAKING] = CONSTANT_CREATE,
	[SANDBOX_DELETING] = CONSTANT_STOP_ATTEMPT,
	[SANDBOX_FAILED] = CONSTANT_COUNT,
	[SANDBOX_GONE] = CONSTANT_COUNT,
};

/* clang-format off */
#define GO(state, act)	{ .to = SANDBOX_##state, .action = ACT_##act, .allowed = true }

static const struct step steps[SANDBOX_STATE_COUNT][SANDBOX_EVENT_COUNT] = {
	[SANDBOX_CREATING] = {
		[EV_UP]		= GO(READY,	NONE),
		[EV_BROKEN]	= GO(FAILED,	DESTROY),	/* half a box is of no use */
		[EV_SEEN]	= GO(CREATING,	BUILD),		/* there, but no hello yet */
		[EV_ABSENT]	= GO(CREATING,	BUILD),		/* we died before it was made */
		[EV_REMOVED]	= GO(CREATING,	BUILD),
		[EV_TIMEOUT]	= GO(FAILED,	DESTROY),
		[EV_WAKE]	= GO(CREATING,	NONE),		/* it is on its way */
		[EV_DELETE]	= GO(DELETING,	DESTROY),	/* parts of it may exist */
	},
	[SANDBOX_READY] = {
		[EV_UP]		= GO(READY,	NONE),		/* told twice */
		[EV_BROKEN]	= GO(READY,	NONE),		/* late: another one is up */
		[EV_SEEN]	= GO(READY,	NONE),
		[EV_ABSENT]	= GO(FAILED,	REPORT),	/* it died; its files are kept */
		[EV_REMOVED]	= GO(FAILED,	REPORT),	/* we did not remove it */
		[EV_TIMEOUT]	= GO(READY,	NONE),		/* late: of the state before */
		[EV_USE]	= GO(READY,	NONE),
		[EV_SLEEP]	= GO(FALLING_ASLEEP, SLEEP),
		[EV_WAKE]	= GO(READY,	NONE),
		[EV_DELETE]	= GO(DELETING,	DESTROY),
	},
	/* A request that wants to use it waits until it sleeps, and wakes it then. */
	[SANDBOX_FALLING_ASLEEP] = {
		[EV_UP]		= GO(FALLING_ASLEEP, SLEEP),	/* late: it was started before */
		[EV_BROKEN]	= GO(FALLING_ASLEEP, SLEEP),
		[EV_SEEN]	= GO(FALLING_ASLEEP, SLEEP),
		[EV_ABSENT]	= GO(ASLEEP,	NONE),
		[EV_REMOVED]	= GO(FAILED,	REPORT),	/* its disk too */
		[EV_TIMEOUT]	= GO(FALLING_ASLEEP, SLEEP),	/* not seen gone: again */
		[EV_SLEEP]	= GO(FALLING_ASLEEP, NONE),	/* asked twice */
		[EV_DELETE]	= GO(DELETING,	DESTROY),
	},
	[SANDBOX_ASLEEP] = {
		[EV_UP]		= GO(FALLING_ASLEEP, SLEEP),	/* late: no request wants it now */
		[EV_BROKEN]	= GO(ASLEEP,	NONE),
		[EV_SEEN]	= GO(FALLING_ASLEEP, SLEEP),	/* asleep means no processes */
		[EV_ABSENT]	= GO(ASLEEP,	NONE),
		[EV_REMOVED]	= GO(FAILED,	REPORT),
		[EV_TIMEOUT]	= GO(ASLEEP,	NONE),		/* late: of the state before */
		[EV_USE]	= GO(WAKING,	WAKE),
		[EV_SLEEP]	= GO(ASLEEP,	NONE),
		[EV_WAKE]	= GO(WAKING,	WAKE),
		[EV_DELETE]	= GO(DELETING,	DESTROY),
	},
	[SANDBOX_WAKING] = {
		[EV_UP]		= GO(READY,	NONE),
		[EV_BROKEN]	= GO(FAILED,	STOP),		/* its files are kept */
		[EV_SEEN]	= GO(WAKING,	WAKE),		/* there, but no hello yet */
		[EV_ABSENT]	= GO(WAKING,	WAKE),		/* we died before it was started */
		[EV_REMOVED]	= GO(FAILED,	REPORT),
		[EV_TIMEOUT]	= GO(FAILED,	STOP),
		[EV_WAKE]	= GO(WAKING,	NONE),		/* it is on its way */
		[EV_DELETE]	= GO(DELETING,	DESTROY),
	},
	[SANDBOX_DELETING] = {
		[EV_UP]		= GO(DELETING,	DESTROY),	/* it had not heard */
		[EV_BROKEN]	= GO(DELETING,	DESTROY),	/* it may have left parts */
		[EV_SEEN]	= GO(DELETING,	DESTROY),
		[EV_ABSENT]	= GO(DELETING,	DESTROY),	/* no processes is no proof */
		[EV_REMOVED]	= GO(GONE,	REPORT),
		[EV_TIMEOUT]	= GO(DELETING,	DESTROY),	/* the node was away: again */
		[EV_DELETE]	= GO(DELETING,	DESTROY),	/* asked twice */
	},
	[SANDBOX_FAILED] = {
		[EV_UP]		= GO(FAILED,	STOP),		/* too late */
		[EV_BROKEN]	= GO(FAILED,	NONE),
		[EV_SEEN]	= GO(FAILED,	STOP),		/* failed means no processes */
		[EV_ABSENT]	= GO(FAILED,	NONE),
		[EV_REMOVED]	= GO(FAILED,	NONE),		/* the owner still has to see it */
		[EV_TIMEOUT]	= GO(FAILED,	NONE),
		[EV_WAKE]	= GO(WAKING,	WAKE),		/* if its disk is there still */
		[EV_DELETE]	= GO(DELETING,	DESTROY),
	},
	[SANDBOX_GONE] = {
		[EV_UP]		= GO(GONE,	DESTROY),	/* a ghost */
		[EV_BROKEN]	= GO(GONE,	DESTROY),	/* late: it may have left parts */
		[EV_SEEN]	= GO(GONE,	DESTROY),
		[EV_ABSENT]	= GO(GONE,	NONE),
		[EV_REMOVED]	= GO(GONE,	NONE),
		[EV_TIMEOUT]	= GO(GONE,	NONE),
		[EV_DELETE]	= GO(GONE,	NONE),		/* the receipt again */
	},
};
#undef GO
/* clang-format on */

int lifecycle_step(enum sandbox_state from, enum sandbox_event ev, struct step *ret,
		   struct err *e)
{
	const struct step *s = &steps[from][ev];

	if (!s->allowed)
		return err_set(e, ERR_CONFLICT, "cannot %s a sandbox that is %s", event_names[ev],
			       state_names[from]);
	*ret = *s;
	return 0;
}

uint64_t lifecycle_deadline_ms(enum sandbox_state s, unsigned divisor)
{
	uint64_t ms;

	if (deadlines[s] == CONSTANT_COUNT)
		return 0;
	ms = constant_ms(deadlines[s], divisor);
	return ms < LIFECYCLE_LEAST_MS ? LIFECYCLE_LEAST_MS : ms;
}

bool sandbox_event_is_fact(enum sandbox_event ev)
{
	return ev < EV_USE;
}

const char *sandbox_state_name(enum sandbox_state s)
{
	return state_names[s];
}

const char *sandbox_event_name(enum sandbox_event ev)
{
	return event_names[ev];
}

bool sandbox_state_by_name(const char *name, enum sandbox_state *ret)
{
	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		if (strcmp(state_names[s], name) != 0)
			continue;
		*ret = (enum sandbox_state)s;
		return true;
	}
	return false;
}

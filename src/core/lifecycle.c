#include "core/lifecycle.h"

#include <string.h>

static const char *const state_names[SANDBOX_STATE_COUNT] = {
	[SANDBOX_CREATING] = "creating",
	[SANDBOX_READY] = "ready",
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
	[EV_DELETE] = "delete",
};

static const char *const action_names[SANDBOX_ACTION_COUNT] = {
	[ACT_NONE] = "none",
	[ACT_BUILD] = "build",
	[ACT_STOP] = "stop",
	[ACT_DESTROY] = "destroy",
	[ACT_REPORT] = "report",
};

/* Whoever waits has a deadline; the other states wait for nobody. */
static const uint32_t deadlines[SANDBOX_STATE_COUNT] = {
	[SANDBOX_CREATING] = LIFECYCLE_CREATE_MS,
	[SANDBOX_DELETING] = LIFECYCLE_DELETE_MS,
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
		[EV_DELETE]	= GO(DELETING,	DESTROY),	/* parts of it may exist */
	},
	[SANDBOX_READY] = {
		[EV_UP]		= GO(READY,	NONE),		/* told twice */
		[EV_BROKEN]	= GO(READY,	NONE),		/* late: another one is up */
		[EV_SEEN]	= GO(READY,	NONE),
		[EV_ABSENT]	= GO(FAILED,	REPORT),	/* it died; its files are kept */
		[EV_REMOVED]	= GO(FAILED,	REPORT),	/* somebody else removed it */
		[EV_TIMEOUT]	= GO(READY,	NONE),		/* late: of the state before */
		[EV_USE]	= GO(READY,	NONE),
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
	ret->deadline_ms = deadlines[s->to];
	return 0;
}

uint32_t lifecycle_deadline_ms(enum sandbox_state s)
{
	return deadlines[s];
}

bool sandbox_event_is_fact(enum sandbox_event ev)
{
	return ev != EV_USE && ev != EV_DELETE;
}

bool sandbox_state_is_final(enum sandbox_state s)
{
	return s == SANDBOX_GONE;
}

const char *sandbox_state_name(enum sandbox_state s)
{
	return state_names[s];
}

const char *sandbox_event_name(enum sandbox_event ev)
{
	return event_names[ev];
}

const char *sandbox_action_name(enum sandbox_action a)
{
	return action_names[a];
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

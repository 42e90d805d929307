#include "core/host-lease.h"

#include <string.h>

static const char *const state_names[HOST_LEASE_STATE_COUNT] = {
	[HOST_UNREGISTERED] = "unregistered",
	[HOST_LIVE] = "live",
	[HOST_LATE] = "late",
	[HOST_FROZEN] = "frozen",
	[HOST_LOST] = "lost",
	[HOST_DRAINING] = "draining",
	[HOST_GONE] = "gone",
};

static const char *const event_names[HOST_LEASE_EVENT_COUNT] = {
	[HOST_DRAIN] = "drain",
	[HOST_RENEWED] = "renewed",
	[HOST_RENEW_FAILED] = "renew_failed",
	[HOST_LEASE_END_NEAR] = "lease_end_near",
	[HOST_EPOCH_TAKEN] = "epoch_taken",
	[HOST_CAME_BACK_SAME] = "came_back_same",
	[HOST_CAME_BACK_OTHER] = "came_back_other",
	[HOST_RETRY] = "retry",
	[HOST_CLEARED] = "cleared",
	[HOST_REMOVED] = "removed",
};

/* What a step does to the record; deadlines follow from it. */
enum rule {
	RULE_REFUSE, /* a cell the table leaves out */
	RULE_KEEP,
	RULE_LEASE, /* a new end; LIVE means draining if it was */
	RULE_DRAIN,
	RULE_RETRY, /* look again after the time of a renewal */
	RULE_FORGET,
	RULE_CLEAR, /* the house is empty: a new epoch may begin */
};

struct cell {
	enum host_lease_state to;
	enum host_lease_action action;
	enum rule rule;
};

/* clang-format off */
#define GO(state, act, rule_)	{ HOST_##state, HOST_ACT_##act, RULE_##rule_ }

static const struct cell cells[HOST_LEASE_STATE_COUNT][HOST_LEASE_EVENT_COUNT] = {
	[HOST_UNREGISTERED] = {
		[HOST_RENEWED]		= GO(LIVE,	   THAW,   LEASE),	/* restarted */
		[HOST_RENEW_FAILED]	= GO(UNREGISTERED, NONE,   KEEP),
		[HOST_LEASE_END_NEAR]	= GO(UNREGISTERED, NONE,   KEEP),
		[HOST_EPOCH_TAKEN]	= GO(LOST,	   KILL,   RETRY),	/* the same */
		[HOST_CAME_BACK_SAME]	= GO(LIVE,	   THAW,   LEASE),
		[HOST_CAME_BACK_OTHER]	= GO(LOST,	   KILL,   RETRY),
		[HOST_RETRY]		= GO(UNREGISTERED, NONE,   KEEP),
		[HOST_CLEARED]		= GO(UNREGISTERED, NONE,   CLEAR),
		[HOST_REMOVED]		= GO(GONE,	   KILL,   FORGET),
	},
	[HOST_LIVE] = {
		[HOST_DRAIN]		= GO(DRAINING,	   NONE,   DRAIN),
		[HOST_RENEWED]		= GO(LIVE,	   NONE,   LEASE),
		[HOST_RENEW_FAILED]	= GO(LATE,	   NONE,   KEEP),
		[HOST_LEASE_END_NEAR]	= GO(FROZEN,	   FREEZE, RETRY),	/* it hangs */
		[HOST_EPOCH_TAKEN]	= GO(LOST,	   KILL,   RETRY),
		[HOST_CAME_BACK_SAME]	= GO(LIVE,	   NONE,   LEASE),
		[HOST_CAME_BACK_OTHER]	= GO(LOST,	   KILL,   RETRY),
		[HOST_RETRY]		= GO(LIVE,	   NONE,   KEEP),
		[HOST_CLEARED]		= GO(LIVE,	   NONE,   KEEP),
		[HOST_REMOVED]		= GO(GONE,	   KILL,   FORGET),
	},
	[HOST_LATE] = {
		[HOST_DRAIN]		= GO(LATE,	   NONE,   DRAIN),
		[HOST_RENEWED]		= GO(LIVE,	   NONE,   LEASE),
		[HOST_RENEW_FAILED]	= GO(LATE,	   NONE,   KEEP),
		[HOST_LEASE_END_NEAR]	= GO(FROZEN,	   FREEZE, RETRY),
		[HOST_EPOCH_TAKEN]	= GO(LOST,	   KILL,   RETRY),
		[HOST_CAME_BACK_SAME]	= GO(LIVE,	   NONE,   LEASE),
		[HOST_CAME_BACK_OTHER]	= GO(LOST,	   KILL,   RETRY),
		[HOST_RETRY]		= GO(LATE,	   NONE,   KEEP),
		[HOST_CLEARED]		= GO(LATE,	   NONE,   KEEP),
		[HOST_REMOVED]		= GO(GONE,	   KILL,   FORGET),
	},
	[HOST_FROZEN] = {
		[HOST_DRAIN]		= GO(FROZEN,	   NONE,   DRAIN),
		[HOST_RENEWED]		= GO(LIVE,	   THAW,   LEASE),
		[HOST_RENEW_FAILED]	= GO(FROZEN,	   NONE,   KEEP),
		[HOST_LEASE_END_NEAR]	= GO(FROZEN,	   FREEZE, RETRY),
		[HOST_EPOCH_TAKEN]	= GO(LOST,	   KILL,   RETRY),
		[HOST_CAME_BACK_SAME]	= GO(LIVE,	   THAW,   LEASE),
		[HOST_CAME_BACK_OTHER]	= GO(LOST,	   KILL,   RETRY),
		[HOST_RETRY]		= GO(FROZEN,	   FREEZE, RETRY),	/* again */
		[HOST_CLEARED]		= GO(FROZEN,	   NONE,   KEEP),
		[HOST_REMOVED]		= GO(GONE,	   KILL,   FORGET),
	},
	[HOST_LOST] = {
		[HOST_RENEWED]		= GO(LOST,	   KILL,   RETRY),	/* clear first */
		[HOST_RENEW_FAILED]	= GO(LOST,	   NONE,   KEEP),
		[HOST_LEASE_END_NEAR]	= GO(LOST,	   NONE,   KEEP),
		[HOST_EPOCH_TAKEN]	= GO(LOST,	   KILL,   RETRY),
		[HOST_CAME_BACK_SAME]	= GO(LOST,	   KILL,   RETRY),	/* too late */
		[HOST_CAME_BACK_OTHER]	= GO(LOST,	   KILL,   RETRY),
		[HOST_RETRY]		= GO(LOST,	   KILL,   RETRY),
		[HOST_CLEARED]		= GO(UNREGISTERED, NONE,   CLEAR),
		[HOST_REMOVED]		= GO(GONE,	   KILL,   FORGET),
	},
	[HOST_DRAINING] = {
		[HOST_DRAIN]		= GO(DRAINING,	   NONE,   KEEP),
		[HOST_RENEWED]		= GO(LIVE,	   NONE,   LEASE),
		[HOST_RENEW_FAILED]	= GO(LATE,	   NONE,   KEEP),
		[HOST_LEASE_END_NEAR]	= GO(FROZEN,	   FREEZE, RETRY),
		[HOST_EPOCH_TAKEN]	= GO(LOST,	   KILL,   RETRY),
		[HOST_CAME_BACK_SAME]	= GO(LIVE,	   NONE,   LEASE),
		[HOST_CAME_BACK_OTHER]	= GO(LOST,	   KILL,   RETRY),
		[HOST_RETRY]		= GO(DRAINING,	   NONE,   KEEP),
		[HOST_CLEARED]		= GO(DRAINING,	   NONE,   KEEP),
		[HOST_REMOVED]		= GO(GONE,	   KILL,   FORGET),
	},
	[HOST_GONE] = {
		[HOST_RENEWED]		= GO(GONE,	   KILL,   KEEP),	/* a ghost */
		[HOST_RENEW_FAILED]	= GO(GONE,	   NONE,   KEEP),
		[HOST_LEASE_END_NEAR]	= GO(GONE,	   NONE,   KEEP),
		[HOST_EPOCH_TAKEN]	= GO(GONE,	   KILL,   KEEP),
		[HOST_CAME_BACK_SAME]	= GO(GONE,	   KILL,   KEEP),
		[HOST_CAME_BACK_OTHER]	= GO(GONE,	   KILL,   KEEP),
		[HOST_RETRY]		= GO(GONE,	   NONE,   KEEP),
		[HOST_CLEARED]		= GO(GONE,	   NONE,   KEEP),
		[HOST_REMOVED]		= GO(GONE,	   KILL,   KEEP),
	},
};
#undef GO
/* clang-format on */

static uint64_t freeze_ms(uint64_t end_ms, unsigned divisor)
{
	uint64_t before = constant_ms(CONSTANT_HOST_FREEZE_BEFORE, divisor);

	return end_ms > before ? end_ms - before : 0;
}

static uint64_t lease_end_ms(const struct host_lease_input *in, const struct moment *at)
{
	return moment_add(in->sent_ms, constant_ms(CONSTANT_HOST_LEASE, at->divisor));
}

/* Good news is checked before it is believed. */
static enum host_lease_event counted(const struct host_lease *h, const struct host_lease_input *in,
				     const struct moment *at)
{
	if (in->event != HOST_RENEWED && in->event != HOST_CAME_BACK_SAME)
		return in->event;
	if (in->epoch < h->epoch)
		return HOST_RENEW_FAILED;
	if (in->epoch > h->epoch && !h->clear && h->state != HOST_GONE)
		return HOST_EPOCH_TAKEN;
	if (in->sent_ms > at->now_ms || at->now_ms >= freeze_ms(lease_end_ms(in, at), at->divisor))
		return HOST_RENEW_FAILED;
	return in->event;
}

static void follow(struct host_lease *h, enum rule rule, const struct host_lease_input *in,
		   const struct moment *at)
{
	uint64_t end = lease_end_ms(in, at);

	switch (rule) {
	case RULE_LEASE:
		h->epoch = in->epoch;
		h->clear = false;
		h->end_ms = end > h->end_ms ? end : h->end_ms; /* answers may overtake */
		h->retry_ms = 0;
		return;
	case RULE_DRAIN:
		h->draining = true;
		return;
	case RULE_RETRY:
		h->retry_ms = moment_after(at, CONSTANT_HOST_RENEW);
		return;
	case RULE_CLEAR:
	case RULE_FORGET:
		h->clear = rule == RULE_CLEAR;
		h->draining = false;
		h->end_ms = 0;
		h->retry_ms = 0;
		return;
	default:
		return;
	}
}

int host_lease_apply(struct host_lease *h, const struct host_lease_input *in,
		     const struct moment *at, enum host_lease_action *ret, struct err *e)
{
	enum host_lease_event ev = counted(h, in, at);
	const struct cell *c = &cells[h->state][ev];

	if (c->rule == RULE_REFUSE)
		return err_set(e, ERR_CONFLICT, "cannot %s a host that is %s", event_names[ev],
			       state_names[h->state]);
	if (ev == HOST_LEASE_END_NEAR && host_lease_runs(h) &&
	    at->now_ms < freeze_ms(h->end_ms, at->divisor)) {
		*ret = HOST_ACT_NONE; /* a timer set before the last renewal */
		return 0;
	}
	follow(h, c->rule, in, at);
	h->state = c->to == HOST_LIVE && h->draining ? HOST_DRAINING : c->to;
	*ret = c->action;
	return 0;
}

uint64_t host_lease_deadline_ms(const struct host_lease *h, unsigned divisor)
{
	if (host_lease_runs(h))
		return freeze_ms(h->end_ms, divisor);
	return h->state == HOST_FROZEN || h->state == HOST_LOST ? h->retry_ms : NEVER;
}

bool host_lease_due(const struct host_lease *h, enum host_lease_event *ret)
{
	if (h->state == HOST_UNREGISTERED || h->state == HOST_GONE)
		return false;
	*ret = host_lease_runs(h) ? HOST_LEASE_END_NEAR : HOST_RETRY;
	return true;
}

bool host_lease_runs(const struct host_lease *h)
{
	return h->state == HOST_LIVE || h->state == HOST_LATE || h->state == HOST_DRAINING;
}

bool host_lease_takes_new(const struct host_lease *h)
{
	return h->state == HOST_LIVE;
}

enum host_lease_state host_lease_seen(const struct host_sight *h, unsigned divisor)
{
	uint64_t lease = constant_ms(CONSTANT_HOST_LEASE, divisor);
	uint64_t renew = constant_ms(CONSTANT_HOST_RENEW, divisor);

	if (h->removed || h->lost)
		return h->removed ? HOST_GONE : HOST_LOST;
	if (h->now_ms >= freeze_ms(h->lease_until_ms, divisor))
		return HOST_FROZEN;
	if (h->lease_until_ms != NEVER && h->lease_until_ms - h->now_ms < lease - renew - renew / 2)
		return HOST_LATE;
	return h->draining ? HOST_DRAINING : HOST_LIVE;
}

const char *host_lease_state_name(enum host_lease_state s)
{
	return state_names[s];
}

const char *host_lease_event_name(enum host_lease_event ev)
{
	return event_names[ev];
}

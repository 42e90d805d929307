/*
 * A host's right to run sandboxes, and how it fences itself when it loses it.
 *
 * Seen from the host: times are its own monotonic ones. The lease is the
 * database's, so a renewal counts from when it was asked for, not from when
 * the answer came: the host always ends its lease no later than the database
 * does. Before that end it freezes its sandboxes; back with the same epoch it
 * thaws them; if another took the epoch over it kills them, and registers anew
 * only when they were observed gone.
 *
 * Seen from the others: before lease end plus a margin, in the database's time,
 * nothing is re-created (store/host-replace.c).
 */
#pragma once

#include "core/constants.h"
#include "lib/err.h"

/* Zero denies: an unregistered host runs nothing. */
enum host_lease_state {
	HOST_UNREGISTERED,
	HOST_LIVE,
	HOST_LATE,     /* could not renew; may run until its lease ends */
	HOST_FROZEN,   /* fenced itself in time */
	HOST_LOST,     /* taken over; what runs here must die */
	HOST_DRAINING, /* live, takes nothing new */
	HOST_GONE,     /* removed from the cell: the last state */
	HOST_LEASE_STATE_COUNT
};

enum host_lease_event {
	HOST_DRAIN,           /* request: take nothing new */
	HOST_RENEWED,         /* fact: registered, or renewed under our epoch */
	HOST_RENEW_FAILED,    /* fact: no answer, or an error */
	HOST_LEASE_END_NEAR,  /* fact: the deadline of live, late, draining passed */
	HOST_EPOCH_TAKEN,     /* fact: the database has another epoch for us */
	HOST_CAME_BACK_SAME,  /* fact: the database answers again, our epoch stands */
	HOST_CAME_BACK_OTHER, /* fact: it answers again, and we were taken over */
	HOST_RETRY,           /* fact: the deadline of frozen, lost passed */
	HOST_CLEARED,         /* fact: it was observed that nothing of an older epoch is here */
	HOST_REMOVED,         /* fact: an operator removed this host from the cell */
	HOST_LEASE_EVENT_COUNT
};

/* Each may be repeated. */
enum host_lease_action {
	HOST_ACT_NONE,
	HOST_ACT_FREEZE,
	HOST_ACT_THAW,
	HOST_ACT_KILL,
	HOST_LEASE_ACTION_COUNT
};

struct host_lease {
	enum host_lease_state state;
	bool draining;  /* what it was before it was late or frozen */
	bool clear;     /* unregistered: nothing of an older epoch is here; it was observed */
	uint64_t epoch; /* only grows */
	uint64_t end_ms;
	uint64_t retry_ms;
};

struct host_lease_input {
	enum host_lease_event event;
	uint64_t epoch;   /* renewed, came back same: the epoch the database has for us */
	uint64_t sent_ms; /* the same: when the question was sent */
};

/*
 * What the event means for the record, applied to it. ERR_CONFLICT with a
 * sentence if a request is refused. A renewal whose lease is over by now, or
 * of an epoch below ours, counts as failed; one of an epoch above ours as
 * taken over, unless the host is clear of everything older.
 */
must_check int host_lease_apply(struct host_lease *h, const struct host_lease_input *in,
				const struct moment *at, enum host_lease_action *ret,
				struct err *e);

/* From the record alone; NEVER: nothing is waited for. */
uint64_t host_lease_deadline_ms(const struct host_lease *h, unsigned divisor);

/* The event to apply at that time. False if nothing is waited for. */
must_check bool host_lease_due(const struct host_lease *h, enum host_lease_event *ret);

/* May a sandbox compute here at all; may a new one come. */
bool host_lease_runs(const struct host_lease *h);
bool host_lease_takes_new(const struct host_lease *h);

/* What another sees of a host, in the database's time. */
struct host_sight {
	uint64_t lease_until_ms; /* NEVER: it has no lease and needs none */
	uint64_t now_ms;
	bool draining, lost, removed;
};

/* Frozen is what it must have done by now, if it still lives: it can be relied upon. */
enum host_lease_state host_lease_seen(const struct host_sight *h, unsigned divisor);

const char *host_lease_state_name(enum host_lease_state s);
const char *host_lease_event_name(enum host_lease_event ev);

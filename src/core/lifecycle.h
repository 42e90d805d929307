/*
 * The life of a sandbox, as a table.
 *
 * This file decides, it does not act: no sockets, no SQL, no clock. A caller that
 * sees an event (a request, an observation, a deadline) asks lifecycle_step()
 * what it means, stores the new state with its deadline, and then carries out
 * the action. The store comes first, so that after a crash the action is
 * repeated, not forgotten: every action must be safe to repeat.
 *
 * A request (use, delete) may be refused. A fact may not: it can come late, in
 * any state, and the table says what to do about it. "Unknown" is no event:
 * a caller that could not look has seen nothing.
 */
#pragma once

#include "core/constants.h"
#include "lib/err.h"

enum sandbox_state {
	SANDBOX_CREATING,       /* promised; parts of it may exist */
	SANDBOX_READY,          /* init has said hello */
	SANDBOX_FALLING_ASLEEP, /* its processes are to be ended and seen gone; the disk stays */
	SANDBOX_ASLEEP,         /* no processes; any use wakes it */
	SANDBOX_WAKING,         /* to be started again on its own disk */
	SANDBOX_DELETING,       /* to be destroyed and proven absent */
	SANDBOX_FAILED,         /* no processes; disk kept until deleted */
	SANDBOX_GONE,           /* the last state: only the tombstone is left */
	SANDBOX_STATE_COUNT
};

enum sandbox_event {
	EV_UP,      /* fact: built, and init said hello */
	EV_BROKEN,  /* fact: it could not be built */
	EV_SEEN,    /* fact: its processes were seen running (at restart) */
	EV_ABSENT,  /* fact: its processes were seen gone; the rest may be there */
	EV_REMOVED, /* fact: every part of it was proven absent */
	EV_TIMEOUT, /* fact: the deadline of this state has passed */
	EV_USE,     /* request: exec, files, anything that needs it to run */
	EV_SLEEP,   /* request: end its processes, keep its disk */
	EV_WAKE,    /* request: let it run again, also one that failed */
	EV_DELETE,  /* request */
	SANDBOX_EVENT_COUNT
};

enum sandbox_action {
	ACT_NONE,
	ACT_BUILD,   /* tell the node to create and start it */
	ACT_SLEEP,   /* tell the node to end its processes, politely; see that they are gone */
	ACT_WAKE,    /* tell the node to start it again on the disk it has */
	ACT_STOP,    /* tell the node to end its processes; the disk stays */
	ACT_DESTROY, /* tell the node to remove all of it and to prove it */
	ACT_REPORT,  /* tell the owner: this happened by itself */
	SANDBOX_ACTION_COUNT
};

#define LIFECYCLE_LEAST_MS 10000 /* work of the host is not sped up by a divisor */

struct step {
	enum sandbox_state to;
	enum sandbox_action action;
	bool allowed;
};

/* What `ev` means in state `from`. ERR_CONFLICT if it is not allowed there. */
must_check int lifecycle_step(enum sandbox_state from, enum sandbox_event ev,
			      struct step *ret, struct err *e);

/* How long is waited in this state; 0: for nothing. Of a deletion the ladder knows better. */
uint64_t lifecycle_deadline_ms(enum sandbox_state s, unsigned divisor);
bool sandbox_event_is_fact(enum sandbox_event ev);
const char *sandbox_state_name(enum sandbox_state s);
const char *sandbox_event_name(enum sandbox_event ev);
must_check bool sandbox_state_by_name(const char *name, enum sandbox_state *ret);

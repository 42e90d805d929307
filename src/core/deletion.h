/*
 * The end of an allocation: from active to a tombstone with its receipt.
 *
 * A saga over the stop ladder. The intent is stored first; then the processes
 * are ended and observed gone, then everything else is destroyed and observed
 * gone, and only then is the row erased. Both halves climb the same ladder,
 * with attempt ids, backoff and quarantine, so a deletion that cannot be
 * proven stays, is retried by its alarm, and says when. Nothing that arrives
 * late brings a deleted allocation back.
 *
 * The record holds all that is needed to go on: no other row is asked. While
 * active, the ladder in it serves ordinary stops.
 */
#pragma once

#include "core/stop.h"

/* Zero destroys nothing; with the zero ladder, quarantined, it does not launch either. */
enum deletion_state {
	DELETION_ACTIVE,
	DELETION_PENDING,    /* the intent is stored; new work is refused from here on */
	DELETION_STOPPING,   /* the ladder ends its processes */
	DELETION_RELEASING,  /* the ladder destroys the rest */
	DELETION_TOMBSTONED, /* the last state */
	DELETION_STATE_COUNT
};

enum deletion_event {
	DELETION_REQUEST, /* request: delete it */
	DELETION_USE,     /* request: new work, registration, a create of the same id */
	DELETION_BEGIN,   /* request: go from the intent to the ladder */
	DELETION_PROVEN,  /* fact: the ladder observed absence */
	DELETION_ENDED,   /* fact: no process of it can be left (the machine was restarted) */
	DELETION_REMOVED, /* fact: every part of it is proven absent by other means */
	DELETION_SEEN,    /* fact: something of it was seen alive */
	DELETION_EVENT_COUNT
};

enum deletion_action {
	DELETION_ACT_NONE,
	DELETION_ACT_NOTE,    /* asked again: only the log has to know */
	DELETION_ACT_BEGIN,   /* the intent is stored: begin */
	DELETION_ACT_TRY,     /* an attempt is due now: begin it */
	DELETION_ACT_END,     /* end the processes, observe; answer under the attempt's id */
	DELETION_ACT_DESTROY, /* remove every part, observe each; answer under the attempt's id */
	DELETION_ACT_OBSERVE, /* only look; answer under the attempt's id */
	DELETION_ACT_ALERT,   /* quarantined: somebody should know */
	DELETION_ACT_STOPPED, /* an active one has stopped: go on with whoever waited */
	DELETION_ACT_ERASE,   /* erase the row, leave tombstone and receipt, free the capacity */
	DELETION_ACT_RECEIPT, /* it is gone already: show the receipt */
	DELETION_ACTION_COUNT
};

struct deletion {
	enum deletion_state state;
	uint64_t generation;   /* of the allocation; kept in the tombstone */
	bool force;            /* the owner said: whatever is in it */
	uint64_t requested_ms; /* when deletion was first asked for */
	uint64_t verified_ms;  /* when absence was proven */
	struct stop stop;
};

struct deletion_input {
	enum deletion_event event;
	bool force;       /* request */
	bool unsaved;     /* request: it holds work nobody fetched */
	const char *text; /* request: why. May be NULL */
};

void deletion_init(struct deletion *d, uint64_t generation);

/*
 * What the event means for the record, applied to it. ERR_CONFLICT with a
 * sentence if a request is refused; facts never are. Refused or ignored, the
 * record is as it was.
 */
must_check int deletion_apply(struct deletion *d, const struct deletion_input *in,
			      const struct moment *at, enum deletion_action *ret, struct err *e);

/* The same for an event of the ladder. STOP_RELEASE counts as DELETION_ENDED. */
must_check int deletion_ladder(struct deletion *d, const struct stop_input *in,
			       const struct moment *at, enum deletion_action *ret,
			       struct err *e);

/* From the record alone; NEVER: nothing is waited for. */
uint64_t deletion_deadline_ms(const struct deletion *d);

/* Applies what is due by now, if anything; `attempt` is the id of an attempt that begins. */
must_check int deletion_tick(struct deletion *d, uint64_t attempt, const struct moment *at,
			     enum deletion_action *ret, struct err *e);

bool deletion_event_is_fact(enum deletion_event ev);
const char *deletion_state_name(enum deletion_state s);
const char *deletion_event_name(enum deletion_event ev);
const char *deletion_action_name(enum deletion_action a);
must_check bool deletion_state_by_name(const char *name, enum deletion_state *ret);

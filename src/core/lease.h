/*
 * The lease of a wrapper: the durable right of one agent session to have one
 * process tree, and the debt to prove it gone.
 *
 * Decides, does not act. The lease is stored before anything is started or
 * stopped. While it is neither none nor the lease of the very instance that
 * was observed, nothing starts. Stopping is the ladder of core/stop.h; only
 * observed absence leads back to none. Generations only grow.
 */
#pragma once

#include "core/stop.h"

/* Zero denies: a record that was not filled in is quarantined. */
enum lease_state {
	LEASE_QUARANTINED,
	LEASE_NONE,     /* no wrapper exists: verified, or never was */
	LEASE_STARTING, /* launch authorised; it may be running */
	LEASE_READY,    /* it answered; no work accepted */
	LEASE_BUSY,     /* work accepted; its supervisor watches it */
	LEASE_WARM,     /* work done; kept for the next */
	LEASE_STOP_NEEDED,
	LEASE_STOPPING,
	LEASE_STATE_COUNT
};

enum lease_event {
	LEASE_ALLOCATE,     /* request: launch a new instance */
	LEASE_REUSE,        /* request: give the instance that was observed new work */
	LEASE_STOP,         /* request: it must end */
	LEASE_FORCE,        /* request: the same, and out of quarantine too */
	LEASE_BEGIN,        /* request: begin the stop attempt that is due */
	LEASE_RECHECK,      /* request: look at what is quarantined */
	LEASE_VERIFIED,     /* fact, of an instance: it said hello */
	LEASE_ACCEPTED,     /* fact, of an instance: it accepted work */
	LEASE_SETTLED,      /* fact, of an instance: its work ended well */
	LEASE_OWNED_ABSENT, /* fact, of an instance: observed gone, unasked */
	LEASE_TIMEOUT,      /* fact: the deadline of the state passed */
	LEASE_ABSENT,       /* facts of a stop attempt, as in core/stop.h */
	LEASE_PRESENT,
	LEASE_UNKNOWN,
	LEASE_EXHAUSTED,
	LEASE_PROVEN, /* fact: proven gone by other means, e.g. the machine was restarted */
	LEASE_EVENT_COUNT
};

enum lease_action {
	LEASE_ACT_NONE,
	LEASE_ACT_NOTE,      /* nothing new: only the log has to know */
	LEASE_ACT_SPAWN,     /* start it, with instance id and generation visible from outside */
	LEASE_ACT_USE,       /* give the work to the one that is there */
	LEASE_ACT_SUPERVISE, /* watch it: at its deadline tell how long it was silent */
	LEASE_ACT_TRY,       /* a stop attempt is due now: begin it */
	LEASE_ACT_END,       /* TERM, look, KILL, look; answer under the attempt's id */
	LEASE_ACT_OBSERVE,   /* only look; answer under the attempt's id */
	LEASE_ACT_ALERT,
	LEASE_ACT_DRAIN, /* none again: hand out queued turns */
	LEASE_ACTION_COUNT
};

enum lease_reason {
	LEASE_REASON_NONE,
	LEASE_READINESS_FAILED,
	LEASE_STARTUP_FAILED,
	LEASE_UNHEALTHY,
	LEASE_TERMINAL_FAILED,
	LEASE_TERMINAL_COMPLETED,
	LEASE_TERMINAL_ENDED,
	LEASE_TERMINAL_INTERRUPTED,
	LEASE_IDLE_TIMEOUT,
	LEASE_KEEP_WARM_EXPIRED,
	LEASE_USER_INTERRUPT,
	LEASE_SESSION_DELETE,
	LEASE_UNEXPECTED_WRAPPER,
	LEASE_OBSERVATION_FAILED,
	LEASE_REASON_COUNT
};

#define LEASE_INSTANCE_SIZE 40

/* Marks can be forged: a generation from here on moves nothing, so ours never run out. */
#define LEASE_SEEN_MAX      (UINT64_C(1) << 62)

/* One physical wrapper. Generation 0 is no wrapper. */
struct instance {
	uint64_t generation;
	char id[LEASE_INSTANCE_SIZE];
};

struct lease {
	enum lease_state state;
	bool session_wide;        /* the stop is for every wrapper of the session */
	uint64_t next_generation; /* of the next instance; only grows */
	uint64_t deadline_ms;     /* of starting, ready, busy, warm */
	uint64_t keep_warm_ms;    /* reused: until when it would have been kept */
	enum lease_reason reason; /* of the stop */
	struct instance instance; /* generation 0: none */
	struct stop stop;         /* the ladder, while the state is one of it */
};

struct lease_input {
	enum lease_event event;
	struct instance instance; /* allocate: id of the new one; facts of an instance: which */
	uint64_t attempt;         /* as in core/stop.h */
	bool working;             /* timeout: accepted work that has not ended is on record */
	uint64_t silent_ms;       /* timeout: for so long it gave no sign of life */
	bool session_wide;        /* stop: an observation showed a foreign wrapper */
	enum lease_reason reason; /* stop */
	uint64_t seen_generation; /* stop: the highest observed, 0: none; ours stays above it */
	const char *text;
};

/* What was seen of a session's wrappers. Zero is unknown. */
enum wrapper_seen {
	WRAPPER_UNKNOWN,
	WRAPPER_ABSENT,
	WRAPPER_PRESENT
};

struct wrapper_observation {
	enum wrapper_seen seen;
	unsigned count;           /* present: how many */
	struct instance instance; /* of one of them; generation 0: it carries no mark */
	uint64_t max_generation;  /* of all of them */
};

enum lease_verdict_kind {
	LEASE_BLOCKED,     /* cleanup is owed: come back at retry_ms */
	LEASE_DO_REUSE,    /* apply LEASE_REUSE */
	LEASE_DO_ALLOCATE, /* apply LEASE_ALLOCATE */
	LEASE_DO_RENEW,    /* apply LEASE_OWNED_ABSENT, then LEASE_ALLOCATE */
	LEASE_DO_STOP,     /* apply `stop`, and fail the request */
	LEASE_VERDICT_COUNT
};

struct lease_verdict {
	enum lease_verdict_kind kind;
	uint64_t retry_ms;
	struct lease_input stop;
};

void lease_init(struct lease *l);

/*
 * May the session have a wrapper now? To be asked with an observation made
 * after the lease was read, and applied only if the lease has not changed
 * since (its version); otherwise read and ask again.
 */
struct lease_verdict lease_authorize(const struct lease *l, const struct wrapper_observation *o);

/*
 * What the event means for the record, applied to it. ERR_CONFLICT with a
 * sentence if a request is refused; facts never are. Refused or ignored, the
 * record is as it was. A fact of another instance or attempt is ignored.
 */
must_check int lease_apply(struct lease *l, const struct lease_input *in, const struct moment *at,
			   enum lease_action *ret, struct err *e);

/* From the record alone; NEVER: nothing is waited for. */
uint64_t lease_deadline_ms(const struct lease *l);

/* The event to apply at that time. False if nothing is waited for. */
must_check bool lease_due(const struct lease *l, enum lease_event *ret);

const char *lease_state_name(enum lease_state s);
const char *lease_event_name(enum lease_event ev);
const char *lease_reason_name(enum lease_reason r);

/* LEASE_QUARANTINED for a word that is none. */
enum lease_state lease_state_by_name(const char *name);

/* LEASE_REASON_NONE for a word that is none. */
enum lease_reason lease_reason_by_name(const char *name);

/*
 * The stop ladder: from "this must end" to "it was observed gone".
 *
 * Decides, does not act. The record is stored before its action is carried
 * out; what was observed comes back as a fact. A stop is tried at once and
 * after each delay of the backoff; then it is quarantined and only looked at,
 * ever more rarely but for ever. Asking again changes neither the schedule nor
 * the count. Absence is the only way out, and "unknown" is not absence.
 *
 * Every attempt has an id its caller draws at random (not 0). An answer counts
 * only while its attempt is the one in flight. A daemon that finds attempts of
 * its dead predecessor answers them with "unknown": the process that could tell is gone.
 */
#pragma once

#include "core/constants.h"
#include "lib/err.h"

/* The zero value denies: a record that was not filled in is quarantined, and due for a look. */
enum stop_state {
	STOP_QUARANTINED, /* attempts used up, or the record unreadable: only looks */
	STOP_NONE,        /* nothing to stop */
	STOP_NEEDED,      /* owed; tried at next_ms */
	STOP_STOPPING,    /* an attempt is in flight */
	STOP_STATE_COUNT
};

enum stop_event {
	STOP_REQUEST,   /* request: it must end */
	STOP_FORCE,     /* request: the same, by its owner: quarantined, it is one attempt */
	STOP_BEGIN,     /* request: begin the attempt that is due */
	STOP_RECHECK,   /* request: look at what is quarantined; before its time if a user waits */
	STOP_ABSENT,    /* fact, of an attempt: observed gone */
	STOP_PRESENT,   /* fact, of an attempt: observed still there */
	STOP_UNKNOWN,   /* fact, of an attempt: could not look */
	STOP_EXPIRED,   /* fact: the deadline passed */
	STOP_EXHAUSTED, /* fact: no more attempts are to be made */
	STOP_RELEASE,   /* fact: proven gone by other means (machine restarted, all destroyed) */
	STOP_EVENT_COUNT
};

enum stop_action {
	STOP_ACT_NONE,
	STOP_ACT_NOTE,    /* nothing new: only the log has to know */
	STOP_ACT_TRY,     /* an attempt is due now: begin it */
	STOP_ACT_END,     /* TERM, look, KILL, look; answer under the attempt's id */
	STOP_ACT_OBSERVE, /* only look; answer under the attempt's id */
	STOP_ACT_ALERT,   /* quarantined: an operator should know */
	STOP_ACT_DONE,    /* gone: go on with the calls that waited for it */
	STOP_ACTION_COUNT
};

#define STOP_REASON_SIZE 64
#define STOP_ERROR_SIZE  200

struct stop {
	enum stop_state state;
	unsigned attempts;     /* begun since it was asked for */
	unsigned rechecks;     /* looks since it was first quarantined */
	uint64_t attempt;      /* in flight: an attempt, or a look; else 0 */
	uint64_t requested_ms; /* when it was first asked for */
	uint64_t next_ms;      /* needed: the next attempt; quarantined: the next look */
	uint64_t deadline_ms;  /* until when `attempt` is waited for */
	char reason[STOP_REASON_SIZE];
	char last_error[STOP_ERROR_SIZE];
};

struct stop_input {
	enum stop_event event;
	uint64_t attempt; /* begin, recheck: its new id; facts of an attempt: whose they are */
	const char *text; /* request: why; present, unknown: what was seen. May be NULL */
};

void stop_init(struct stop *s);

/*
 * What the event means for the record, applied to it. ERR_CONFLICT with a
 * sentence if a request is refused; facts never are. Refused or ignored, the
 * record is as it was.
 */
must_check int stop_apply(struct stop *s, const struct stop_input *in, const struct moment *at,
			  enum stop_action *ret, struct err *e);

/* When something is to be done about it, from the record alone; NEVER: not at all. */
uint64_t stop_deadline_ms(const struct stop *s);

/* Its next attempt is further away than one can be: the clock was set back. It is due. */
bool stop_is_misdated(const struct stop *s, const struct moment *at);

/* The event to apply at that time. False if nothing is waited for. */
must_check bool stop_due(const struct stop *s, enum stop_event *ret);

const char *stop_state_name(enum stop_state s);
const char *stop_event_name(enum stop_event ev);

/* STOP_QUARANTINED for a word that is none: a failed read must not mean "none". */
enum stop_state stop_state_by_name(const char *name);

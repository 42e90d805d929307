/*
 * Every time a decision waits for, in one place, and the moment it is made at.
 *
 * Nothing in core/ has a clock: the caller of a decision brings the moment. One
 * divisor shortens all times alike, so that a test sees a day in a second.
 */
#pragma once

#include "lib/base.h"

enum constant {
	CONSTANT_SLEEP_AFTER, /* an idle sandbox is put to sleep */
	CONSTANT_ORPHAN,      /* promised, and still not ready */
	CONSTANT_STUCK,       /* wall limit of a profile that names none */
	CONSTANT_SWEEP,       /* the backstop behind the alarms */
	CONSTANT_USED_FLUSH,  /* uses are remembered so long before they are written */
	CONSTANT_SAMPLE,      /* between looks at what a sandbox uses */
	CONSTANT_CREATE,      /* the node builds it */
	CONSTANT_STARTUP,     /* a wrapper, from authorised to work accepted */
	CONSTANT_READY_ONLY,  /* a wrapper that is up and was given nothing */
	CONSTANT_KEEP_WARM,   /* a wrapper after its work */
	CONSTANT_PING,
	CONSTANT_PONG,
	CONSTANT_NO_OUTPUT,
	CONSTANT_STOP_ATTEMPT, /* one attempt to stop, from begin to given up */
	CONSTANT_OBSERVE_1,    /* looks after TERM, each from the one before */
	CONSTANT_OBSERVE_2,
	CONSTANT_OBSERVE_3,
	CONSTANT_STOP_BACKOFF_1, /* between attempts; see constant_backoff_ms() */
	CONSTANT_STOP_BACKOFF_2,
	CONSTANT_STOP_BACKOFF_3,
	CONSTANT_STOP_BACKOFF_4,
	CONSTANT_STOP_BACKOFF_5,
	CONSTANT_RECHECK_FIRST, /* of a quarantine; see constant_recheck_ms() */
	CONSTANT_RECHECK_MAX,
	CONSTANT_HOST_LEASE,
	CONSTANT_HOST_RENEW,
	CONSTANT_HOST_FREEZE_BEFORE, /* a host freezes itself so long before its lease ends */
	CONSTANT_HOST_MARGIN,        /* no host takes over sooner after its end */
	CONSTANT_TERMINAL,           /* a terminal that names no limit */
	CONSTANT_COUNT
};

#define STOP_ATTEMPTS 6 /* at once, then after each of the five delays */
#define LOW_DISK_MB   2048
#define LOW_MEMORY_MB 512
#define JITTER_SHARE  5 /* jitter adds up to one fifth of a delay */

#define NEVER         UINT64_MAX /* the deadline of what waits for nothing */

/* Never 0, whatever the divisor: a time that ran out at once would be a loop. 0 divides by 1. */
uint64_t constant_ms(enum constant c, unsigned divisor);

/* When a decision is made. Times are the database's, or monotonic where a header says so. */
struct moment {
	uint64_t now_ms;
	unsigned divisor; /* of all constants; 0 is 1 */
	double jitter;    /* a random number in [0,1) */
};

/* Now plus that time; stays below NEVER. */
uint64_t moment_after(const struct moment *at, enum constant c);
uint64_t moment_add(uint64_t from_ms, uint64_t ms);

/* The delay after `attempts` attempts failed (1: the first delay), jitter included. */
uint64_t constant_backoff_ms(unsigned attempts, const struct moment *at);

/* The delay to the next look after `rechecks` looks (0: the first): doubles up to its ceiling. */
uint64_t constant_recheck_ms(unsigned rechecks, const struct moment *at);

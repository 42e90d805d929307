/*
 * What a sandbox may use, one number for each resource. A profile is a set of
 * them under a name; a sandbox has a set of its own, from a profile and from
 * what was asked for it.
 */
#pragma once

#include "lib/err.h"

enum limit {
	LIMIT_MEMORY_MB,
	LIMIT_CPU_MILLI, /* how fast */
	LIMIT_PIDS,
	LIMIT_DISK_MB,
	LIMIT_OPEN_FILES,  /* of one process */
	LIMIT_CPU_MS,      /* how much, of all processes, while one command runs */
	LIMIT_WALL_MS,     /* how long one command may run */
	LIMIT_GRACE_MS,    /* and how much longer before the sandbox is taken for stuck */
	LIMIT_CONNECTIONS, /* new ones to the outside, as the next two */
	LIMIT_REQUESTS,
	LIMIT_BYTES_OUT,
	LIMIT_ARTIFACT_MB,
	LIMIT_COUNT
};

struct limits {
	int64_t of[LIMIT_COUNT]; /* where 0 is allowed, it means: none */
};

#define LIMIT_OPEN INT64_MIN /* not said: whatever else is usual */

const char *limit_name(enum limit l);
struct limits limits_usual(void); /* of a sandbox without a profile */
struct limits limits_open(void);  /* nothing said */

/* The same on a host whose processes may open fewer files than that. */
struct limits limits_usual_on(const struct limits *host);

/* What `l` leaves open is as in `usual`. */
struct limits limits_fill(const struct limits *l, const struct limits *usual);

/* ERR_INVALID names the limit and what it may be. LIMIT_OPEN is fine, if `open` says so. */
must_check int limits_check(const struct limits *l, bool open, struct err *e);

/*
 * ERR_INVALID if more is asked for than a host has: `host` has its numbers, and 0 or less for what
 * is not known of it or may be promised beyond what there is. What is left open fits.
 */
must_check int limits_fit(const struct limits *asked, const struct limits *host, struct err *e);

/* Of a time limit: what is left of it by a divisor of all times; 0: there is none. */
uint64_t limits_ms(const struct limits *l, enum limit which, unsigned divisor);

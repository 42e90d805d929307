/*
 * How berthd itself is, measured every few seconds: whether the database takes writes (by a write,
 * because a reader sees nothing wrong with a full disk), how much room the disk of the journals
 * has, how long the loops take to come to something new, and how far this host's clock is from the
 * database's.
 *
 * What could not be written while the database took no writes is looked for once it does again.
 */
#pragma once

#include "berthd/runtime/berthd.h"

struct health_beat {
	struct job job;
	_Atomic uint64_t sent_ms;
	_Atomic uint64_t lag_ms; /* of the last that came */
	_Atomic bool under_way;
};

struct health {
	struct health_beat beats[BERTHD_LOOPS_MAX];
	struct job job;
	bool probing;
	bool busy;                /* the probe failed, and the database can be asked */
	uint64_t free_ms;         /* when it was last not, by time_mono_ms() */
	uint64_t next_ms;         /* when the next probe is due, by time_mono_ms() */
	uint64_t sent_ms, now_ms; /* of the probe, by the wall; what the database said */

	pthread_mutex_t lock; /* of what follows */
	bool unwritable;
	struct err why;                 /* if it is */
	int64_t clock_skew_ms;          /* this host's clock is so much ahead */
	uint64_t clock_span_ms;         /* and this is how exactly that is known; 0: not at all */
	uint64_t disk_free, disk_total; /* total 0: unknown */
};

struct health_figures {
	bool unwritable;
	struct err why;
	const char *state_disk; /* "ok", "low", "full", "unknown" */
	uint64_t disk_free;
	uint64_t loop_lag_ms; /* of the slowest */
	const char *clock;    /* "ok", "skewed", "unknown" */
	int64_t clock_skew_ms;
	uint64_t overdue; /* sandboxes for which something is due */
};

void health_init(struct berthd *b);
void health_tick(struct reactor *r); /* control/tick.h */

/* From any thread. */
void health_figures(struct berthd *b, struct health_figures *ret);

/*
 * Whether the sweeps of this host come to an end (control/reconcile.h), and whether what is due is
 * cleaned up faster than more becomes due. If not, a person is told by an alert: `sweep_stalled`
 * after two intervals without the end of one, `cleanup_backlog` if more than one page was due an
 * interval ago and no less is now, `record_unreadable` if a sweep had to leave a record out. Each
 * ends by itself, and none because berthd began again: until that knows better, it is as it was.
 */
#pragma once

#include <uv.h>

#include "berthd/runtime/worker.h"
#include "store/alert.h"

struct reactor;

enum sweep_alert {
	SWEEP_STALLED,
	SWEEP_BACKLOG,
	SWEEP_UNREADABLE,
	SWEEP_ALERT_COUNT
};

struct sweep_watch {
	uv_timer_t timer;
	struct job job;
	bool asking;          /* the job is under way */
	uint64_t compared_ms; /* when `before` was counted */
	uint64_t before;      /* overdue then */
	unsigned compared;    /* so often; the first time with nothing */
	_Atomic uint64_t overdue;
	struct {
		struct alert alert;
		bool known;   /* how it is: or the job leaves it as it is */
		bool raises;  /* the job does; or it ends it */
		bool written; /* the records say so: as in `lasts` */
		bool lasts;
	} alerts[SWEEP_ALERT_COUNT];
};

void sweep_watch_begin(struct reactor *r);
void sweep_watch_end(struct reactor *r);

/* From any thread: how many were due when they were last counted. */
uint64_t sweep_watch_overdue(const struct sweep_watch *w);

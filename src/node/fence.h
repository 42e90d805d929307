/*
 * The fence: a host in a cell may let its sandboxes run only as long as berthd
 * tells it so. Not told again in time, it freezes all of them by itself; told
 * again under the same epoch, it lets them go on; told that another host has
 * the epoch by now, it kills them and answers when they were seen gone.
 *
 * What was told is in RUN/fence before it is acted upon, so that a berth-node
 * that was killed goes on where it was: frozen stays frozen. A host that was
 * never told of a lease has none, and no fence.
 */
#pragma once

#include <uv.h>

#include "node/freeze-watchdog.h"
#include "proto/node.h"

struct node;
struct call;

struct fence {
	enum fence_state state;
	uint64_t epoch;
	uint64_t until_ms;  /* CLOCK_BOOTTIME */
	uint64_t frozen_ms; /* when it was seen; 0: not */
	int alarm_fd;       /* timerfd at until_ms */
	uv_poll_t alarm;
	uv_timer_t look; /* until what was begun is seen done */
	uint64_t give_up_ms;
	bool thaw_due;                /* they may run again, and may still be frozen */
	struct call *killers;         /* calls that asked to kill, and wait */
	struct freeze_watchdog guard; /* freezes them at until_ms even if berth-node does not */
	bool opened;
};

/* Before anything is adopted: what should be frozen is, first of all. */
must_check int fence_open(struct node *n, struct err *e);
void fence_close(struct node *n);

/*
 * ERR_BUSY with the reason while nothing may be started here or talked to, and
 * for what was decided under another epoch.
 */
must_check int fence_check(const struct call *c, struct err *e);

void verb_lease(struct call *c);

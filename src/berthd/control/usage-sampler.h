/*
 * What the sandboxes of this host use, on its way into the database. berth-node
 * is asked when a command ends and, of those that run, every half minute, one after
 * the other; what it said is written together every two seconds.
 */
#pragma once

#include <pthread.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/runtime/reactor.h"
#include "proto/node.h"
#include "store/usage.h"

#define METER_BUCKETS 4096

struct meter {
	struct reactor *reactor;
	pthread_mutex_t lock;
	struct meter_entry *buckets[METER_BUCKETS]; /* what is not written yet */
	uv_timer_t flush, sample;
	struct job job;
	bool writing, sampling;
	struct place_cursor asked; /* about whom, now */
};

void meter_init(struct meter *m);
void meter_done(struct meter *m);
void meter_begin(struct meter *m, struct reactor *r);
void meter_end(struct meter *m);

void meter_put(struct meter *m, const char *sandbox, const struct node_usage *u);

/* One look as it is written. */
struct usage_look meter_look(const char *sandbox, const struct node_usage *u);

/* On a worker: write what there is, now. */
must_check int meter_flush(struct meter *m, struct store *s, struct err *e);

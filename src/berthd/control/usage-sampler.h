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

struct usage_sampler {
	struct reactor *reactor;
	pthread_mutex_t lock;
	struct meter_entry *buckets[METER_BUCKETS]; /* what is not written yet */
	uv_timer_t flush, sample;
	struct job job;
	bool writing, sampling;
	struct sandbox_cache_cursor asked; /* about whom, now */
};

void usage_sampler_init(struct usage_sampler *m);
void usage_sampler_done(struct usage_sampler *m);
void usage_sampler_begin(struct usage_sampler *m, struct reactor *r);
void usage_sampler_end(struct usage_sampler *m);

void usage_sampler_put(struct usage_sampler *m, const char *sandbox, const struct node_usage *u);

/* One look as it is written. */
struct usage_look usage_sampler_look(const char *sandbox, const struct node_usage *u);

/* On a worker: write what there is, now. */
must_check int usage_sampler_flush(struct usage_sampler *m, struct store *s, struct err *e);

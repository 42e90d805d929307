/*
 * Which sandboxes this berthd is changing right now. A caller that wants to change
 * one by itself (reconciling) keeps off those: what it saw of them is a moment
 * of another change's work. The same for keys whose request is under way.
 */
#pragma once

#include <pthread.h>

#include "lib/base.h"

#define CHANGING_BUCKETS 1024

struct inflight {
	pthread_mutex_t lock;
	struct changing_entry *buckets[CHANGING_BUCKETS];
};

void inflight_init(struct inflight *c);
void inflight_add(struct inflight *c, const char *id); /* counts: one may be added twice */
void inflight_remove(struct inflight *c, const char *id);
bool inflight_has(struct inflight *c, const char *id);

/*
 * Which sandboxes this berthd is changing right now. A caller that wants to change
 * one by itself (reconciling) keeps off those: what it saw of them is a moment
 * of another change's work. The same for keys whose request is under way.
 */
#pragma once

#include <pthread.h>

#include "lib/base.h"

#define CHANGING_BUCKETS 1024

struct changing {
	pthread_mutex_t lock;
	struct changing_entry *buckets[CHANGING_BUCKETS];
};

void changing_init(struct changing *c);
void changing_add(struct changing *c, const char *id); /* counts: one may be added twice */
void changing_remove(struct changing *c, const char *id);
bool changing_has(struct changing *c, const char *id);

/*
 * {id} in a path is an id, an identity key or a name. Before any handler sees
 * it, it is an id: one place, for all routes below /v1/sandboxes. What was
 * found is remembered for a few seconds, so that a command by name needs no
 * database; who asks about the sandbox itself always gets the present one.
 */
#pragma once

#include <pthread.h>

#include "berthd/front/request.h"

#define ADDRESSES_BUCKETS 4096
#define ADDRESSES_MS      5000

struct name_cache {
	pthread_mutex_t lock;
	struct address_entry *entries; /* one a bucket: the newer one stays */
};

void name_cache_init(struct name_cache *a);
void name_cache_done(struct name_cache *a);

/* The request's sandbox as an id in rq->param, then `next`; or the request fails. */
void name_cache_resolve(struct request *rq, void (*next)(struct request *rq));

/*
 * Keys seen lately, by the hash of their secret, so that a request is checked
 * from memory. A key revoked elsewhere is honoured for at most KEY_CACHE_MS.
 */
#pragma once

#include <pthread.h>

#include "store/key.h"

#define KEY_CACHE_MS      5000
#define KEY_CACHE_BUCKETS 1024 /* one key each: a newcomer takes the place */

struct key_cache {
	pthread_mutex_t lock;
	struct key_entry *entries;
};

void key_cache_init(struct key_cache *c);
void key_cache_done(struct key_cache *c);
must_check bool key_cache_get(struct key_cache *c, const char *hash, uint64_t now_ms,
			      struct key *ret);
void key_cache_put(struct key_cache *c, const char *hash, uint64_t now_ms, const struct key *k);
void key_cache_clear(struct key_cache *c); /* a key was revoked here */

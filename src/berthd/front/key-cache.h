/*
 * Keys seen lately, by the hash of their secret, so that a request is checked
 * from memory. A key revoked elsewhere is honoured for at most KEY_CACHE_MS, and
 * one that is not known is asked for once in that time. What a revoked key has open is ended:
 * key-watch.h.
 *
 * Of keys not seen before each source has so many looked up at once, so that wrong keys
 * from one place leave a good one from another its place in line.
 */
#pragma once

#include <pthread.h>

#include "store/key.h"

#define KEY_CACHE_MS      5000
#define KEY_CACHE_BUCKETS 1024 /* one key each: a newcomer takes the place */
#define KEY_SOURCES       128  /* shares, by the hash of an address */
#define KEY_LOOKUPS_MAX   32   /* of keys not seen before, at once and for each source */

struct key_cache {
	pthread_mutex_t lock;
	struct key_entry *entries;
	struct key_entry *unknown;    /* by themselves: they push no key out */
	uint64_t cleared;             /* how often */
	uint8_t lookups[KEY_SOURCES]; /* of keys not seen before */
};

enum key_cache_answer {
	KEY_CACHE_ASK,     /* the database */
	KEY_CACHE_KNOWN,   /* it is in *ret */
	KEY_CACHE_UNKNOWN, /* there was none a moment ago */
	KEY_CACHE_BUSY,    /* too many unknown keys of this source are being looked up */
};

/* One question to the database. */
struct key_lookup {
	size_t source;    /* whose: key_source(), set by the caller */
	uint64_t cleared; /* as it was before */
	bool counted;
};

/* The share of an address: below KEY_SOURCES. A network of IPv6 (/64) is one source. */
size_t key_source(const char *address);

void key_cache_init(struct key_cache *c);
void key_cache_done(struct key_cache *c);

/* After KEY_CACHE_ASK the answer is due: key_cache_found(), with NULL if there was none. */
must_check enum key_cache_answer key_cache_get(struct key_cache *c, const char *hash,
					       uint64_t now_ms, struct key *ret,
					       struct key_lookup *lookup);

/* `unknown`: the database said so; with neither it did not answer. */
void key_cache_found(struct key_cache *c, const struct key_lookup *lookup, const char *hash,
		     uint64_t now_ms, const struct key *k, bool unknown);
void key_cache_clear(struct key_cache *c); /* a key was revoked here */

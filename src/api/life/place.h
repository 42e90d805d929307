/*
 * What this berthd remembers about sandboxes it was asked about, so that the
 * exec path needs no database: owner, generation, state. It may be old; a verb
 * to berth-node with an old generation is refused there, and then it is
 * forgotten here and asked for again.
 */
#pragma once

#include <pthread.h>

#include "core/sandbox.h"

#define PLACES_BUCKETS 4096
#define PLACES_MAX     50000

struct place {
	char id[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	char host[SANDBOX_HOST_SIZE];
	uint64_t generation;
	enum sandbox_state state;
	bool oom_known; /* how many OOM kills there were before the command now running */
	uint64_t oom_kills;
};

struct places {
	pthread_mutex_t lock;
	struct place_entry *buckets[PLACES_BUCKETS];
	size_t count;
};

void places_init(struct places *p);
void places_done(struct places *p);
must_check bool places_get(struct places *p, const char *id, struct place *ret);
void places_put(struct places *p, const struct sandbox *sb); /* keeps the OOM count */
void places_forget(struct places *p, const char *id);

/* The count is now this; true if it was known before and is higher. */
bool places_oom(struct places *p, const char *id, uint64_t oom_kills);

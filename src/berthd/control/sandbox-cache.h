/*
 * What this berthd remembers about sandboxes it was asked about, so that the
 * exec path needs no database: owner, generation, state. It may be old; a verb
 * to berth-node with an old generation is refused there, and then it is
 * forgotten here and asked for again.
 */
#pragma once

#include <pthread.h>

#include "core/sandbox.h"
#include "lib/strv.h"
#include "store/sandbox.h"

#define PLACES_BUCKETS 4096
#define PLACES_MAX     50000

struct place {
	char id[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	char host[SANDBOX_HOST_SIZE];
	uint64_t generation;
	enum sandbox_state state;
	struct limits limits;
};

struct places {
	pthread_mutex_t lock;
	struct place_entry *buckets[PLACES_BUCKETS];
	size_t count;
};

void places_init(struct places *p);
void places_done(struct places *p);
must_check bool places_get(struct places *p, const char *id, struct place *ret);
void places_put(struct places *p, const struct sandbox *sb); /* keeps what was told of OOM kills */
void places_forget(struct places *p, const char *id);

/*
 * The sandbox's own variables, in front of those that are there already and of
 * which each name is kept: for every command, shell and context begun in it.
 */
void places_env(struct places *p, const char *id, struct strv *env);

/* It was used now; with more or less running in it, it is busy. False: it is not known. */
void places_use(struct places *p, const char *id, uint64_t now_ms);
bool places_busy(struct places *p, const char *id, uint64_t now_ms, int more);

/* Code begins (1) or ends (-1) in a context of it: no command is alone meanwhile. */
void places_beside(struct places *p, const char *id, int more);

/* How many commands ever began in it; whether the one that runs now is alone (may be NULL). */
uint64_t places_begun(struct places *p, const char *id, bool *alone);

/* What it may use. Left as it is, if the sandbox is not known. */
void places_limits(struct places *p, const char *id, struct limits *ret);

/* The next that is ready, in no order; begin with a zeroed cursor. False: that was all. */
struct place_cursor {
	size_t bucket, at;
	char id[SANDBOX_ID_SIZE];
	uint64_t generation;
};
must_check bool places_next_ready(struct places *p, struct place_cursor *c);

/* When it was last used and since when it is busy (0: not), as far as this berthd knows. */
void places_used(struct places *p, const char *id, uint64_t *last_ms, uint64_t *busy_ms);

/* What was used since this was asked last, or is busy: at most `max`. */
size_t places_take_used(struct places *p, uint64_t now_ms, struct sandbox_used *ret, size_t max);

/*
 * The kernel counts OOM kills of a sandbox, not of a command. A command remembers,
 * when it begins, how many of them commands were told of so far; when it ends, and
 * there were `kills` since, one of them is its own unless others were told of all.
 */
uint64_t places_oom_told(struct places *p, const char *id);
bool places_oom(struct places *p, const char *id, uint64_t kills, uint64_t told);

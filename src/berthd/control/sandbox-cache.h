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

#define CACHE_BUCKETS 4096
#define CACHE_MAX     50000

struct cached_sandbox {
	char id[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	char host[SANDBOX_HOST_SIZE];
	uint64_t generation;
	enum sandbox_state state;
	struct limits limits;
};

struct sandbox_cache {
	pthread_mutex_t lock;
	struct cache_entry *buckets[CACHE_BUCKETS];
	size_t count;
};

void sandbox_cache_init(struct sandbox_cache *p);
void sandbox_cache_done(struct sandbox_cache *p);
must_check bool sandbox_cache_get(struct sandbox_cache *p, const char *id,
				  struct cached_sandbox *ret);
/* keeps what was told of OOM kills */
void sandbox_cache_put(struct sandbox_cache *p, const struct sandbox *sb);
/* Its last use is kept until it is written: see sandbox_cache_take_used(). */
void sandbox_cache_forget(struct sandbox_cache *p, const char *id);

/*
 * The sandbox's own variables, in front of those that are there already and of
 * which each name is kept: for every command, shell and context begun in it.
 */
void sandbox_cache_env(struct sandbox_cache *p, const char *id, struct strv *env);

/* It was used now; with more or less running in it, it is busy. False: it is not known. */
void sandbox_cache_use(struct sandbox_cache *p, const char *id, uint64_t now_ms);
bool sandbox_cache_busy(struct sandbox_cache *p, const char *id, uint64_t now_ms, int more);

/* Code begins (1) or ends (-1) in a context of it: no command is alone meanwhile. */
void sandbox_cache_beside(struct sandbox_cache *p, const char *id, int more);

/* How many commands ever began in it; whether the one that runs now is alone (may be NULL). */
uint64_t sandbox_cache_begun(struct sandbox_cache *p, const char *id, bool *alone);

/* What it may use. Left as it is, if the sandbox is not known. */
void sandbox_cache_limits(struct sandbox_cache *p, const char *id, struct limits *ret);

/* The next that is ready, in no order; begin with a zeroed cursor. False: that was all. */
struct sandbox_cache_cursor {
	size_t bucket, at;
	char id[SANDBOX_ID_SIZE];
	uint64_t generation;
};
must_check bool sandbox_cache_next_ready(struct sandbox_cache *p, struct sandbox_cache_cursor *c);

/* When it was last used and since when it is busy (0: not), as far as this berthd knows. */
void sandbox_cache_used(struct sandbox_cache *p, const char *id, uint64_t *last_ms,
			uint64_t *busy_ms);

/*
 * What was used since this was asked last, or is busy: at most `max`. Asked only when
 * all that it gave before is written: what was forgotten is removed with that.
 */
size_t sandbox_cache_take_used(struct sandbox_cache *p, uint64_t now_ms, struct sandbox_used *ret,
			       size_t max);

/*
 * The kernel counts OOM kills of a sandbox, not of a command. A command remembers,
 * when it begins, how many of them commands were told of so far; when it ends, and
 * there were `kills` since, one of them is its own unless others were told of all.
 */
uint64_t sandbox_cache_oom_told(struct sandbox_cache *p, const char *id);
bool sandbox_cache_oom(struct sandbox_cache *p, const char *id, uint64_t kills, uint64_t told);

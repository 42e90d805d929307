/*
 * The passes that were shown here, so that each is taken once: a pass of the last
 * minute whose nonce is not known yet. Two sets of nonces, of which the older one
 * is emptied when all that is in it is too old anyway. They end with berthd: a pass
 * from before its start may have been shown to the one before it, and is not taken.
 *
 * The time is the cell's: the database's, carried on by a clock that never jumps.
 */
#pragma once

#include <pthread.h>

#include "berthd/cluster/peer-token.h"

#define PASS_VALID_MS 60000       /* older, or so far ahead: refused */
#define PASS_SEEN_MAX (1UL << 20) /* nonces of two minutes; beyond: busy */

struct peer_token_set {
	uint64_t *slots; /* open addressing; 0: empty */
	size_t size, count;
};

struct peer_token_seen {
	pthread_mutex_t lock;
	struct peer_token_set now, before;
	uint64_t begun_ms, since_ms;
};

/* `begun_ms`: from when on we have seen every pass that is shown here. */
void peer_token_seen_init(struct peer_token_seen *s, uint64_t begun_ms);
void peer_token_seen_done(struct peer_token_seen *s);

/* ERR_DENIED: it is too old, or was shown before. ERR_BUSY: a new pass would do, by and by. */
must_check int peer_token_seen_take(struct peer_token_seen *s, const struct peer_token *p,
				    uint64_t now_ms,
				    struct err *e);

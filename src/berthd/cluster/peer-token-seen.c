#include "berthd/cluster/peer-token-seen.h"

#include <stdlib.h>

#include "lib/errno-map.h"

#define SIZE_FIRST 1024

void peer_token_seen_init(struct peer_token_seen *s, uint64_t begun_ms)
{
	*s = (struct peer_token_seen){ .begun_ms = begun_ms };
	pthread_mutex_init(&s->lock, NULL);
}

void peer_token_seen_done(struct peer_token_seen *s)
{
	free(s->now.slots);
	free(s->before.slots);
	pthread_mutex_destroy(&s->lock);
}

/* A nonce is random: its low bits are as good as any hash. */
static uint64_t *slot(const struct peer_token_set *set, uint64_t nonce)
{
	size_t at = (size_t)nonce & (set->size - 1);

	while (set->slots[at] && set->slots[at] != nonce)
		at = (at + 1) & (set->size - 1);
	return &set->slots[at];
}

static bool has(const struct peer_token_set *set, uint64_t nonce)
{
	return set->count > 0 && *slot(set, nonce);
}

static void grow(struct peer_token_set *set)
{
	struct peer_token_set more = { .size = set->size ? 2 * set->size : SIZE_FIRST };

	more.slots = xcalloc(more.size, sizeof(*more.slots));
	for (size_t i = 0; i < set->size; i++)
		if (set->slots[i])
			*slot(&more, set->slots[i]) = set->slots[i];
	more.count = set->count;
	free(set->slots);
	*set = more;
}

static void add(struct peer_token_set *set, uint64_t nonce)
{
	if (2 * set->count >= set->size)
		grow(set);
	*slot(set, nonce) = nonce;
	set->count++;
}

/* One that is ahead by the whole time is good for twice the time. */
static void rotate(struct peer_token_seen *s, uint64_t now_ms)
{
	if (now_ms - s->since_ms < UINT64_C(2) * PASS_VALID_MS)
		return;
	free(s->before.slots);
	s->before = s->now;
	s->now = (struct peer_token_set){ 0 };
	s->since_ms = now_ms;
}

static int replayed(struct err *e)
{
	err_set(e, ERR_DENIED, "this pass was used before: each is for one request");
	return err_reason(e, REASON_REPLAYED_PASS, 0);
}

static int take(struct peer_token_seen *s, uint64_t nonce, uint64_t now_ms, struct err *e)
{
	if (now_ms > s->since_ms)
		rotate(s, now_ms);
	if (has(&s->now, nonce) || has(&s->before, nonce))
		return replayed(e);
	if (s->now.count >= PASS_SEEN_MAX)
		return err_set(e, ERR_BUSY, "too many requests of other hosts at once");
	add(&s->now, nonce);
	return 0;
}

int peer_token_seen_take(struct peer_token_seen *s, const struct peer_token *p, uint64_t now_ms,
			 struct err *e)
{
	uint64_t apart = p->at_ms > now_ms ? p->at_ms - now_ms : now_ms - p->at_ms;
	int n;

	if (apart > PASS_VALID_MS) {
		err_set(e, ERR_DENIED, "this pass is of another time: it is good for %d s",
			PASS_VALID_MS / 1000);
		err_reason(e, REASON_REPLAYED_PASS, 0);
		return err_fix(e, "Time is the database's: can both hosts reach it?");
	}
	if (p->at_ms < s->begun_ms) {
		err_set(e, ERR_BUSY, "this pass is older than this berthd, which has just started: "
				     "nothing was done");
		return err_fix(e, "Send the request again: it gets a new pass.");
	}
	pthread_mutex_lock(&s->lock);
	n = take(s, p->nonce, now_ms, e);
	pthread_mutex_unlock(&s->lock);
	return n;
}

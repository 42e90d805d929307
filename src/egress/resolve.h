/*
 * Names to addresses, asked of the host's own resolver. A caller that asks for a
 * name that is being asked for waits with the others; an answer serves for a moment.
 */
#pragma once

#include <ares.h>
#include <uv.h>

#include "lib/err.h"

#define RESOLVE_ADDRESSES_MAX 8
#define RESOLVE_BUCKETS       1024
#define RESOLVE_LOOKUPS_MAX   4096 /* names under way or remembered */
#define RESOLVE_OWNER_MAX     256  /* of them for one box */
#define RESOLVE_OWNER_SHARE   8    /* and no more than this part of those that are left */
#define RESOLVE_OWNERS        4096 /* counted apart: as many boxes as have addresses in a row */
#define RESOLVE_KEEP_MS       5000

struct resolved {
	uint32_t addresses[RESOLVE_ADDRESSES_MAX]; /* host order */
	size_t count;                              /* 0: it has none */
};

struct resolve_ask {
	void (*done)(struct resolve_ask *ask, const struct resolved *r);
	struct resolve_ask *next, **at;
	bool waits;
};

struct lookup;
struct watch;

struct resolver {
	uv_loop_t *loop;
	ares_channel channel;
	uv_timer_t tick; /* c-ares' own timeouts, and what is too old */
	uv_timer_t soon; /* tells what is known, from the loop */
	struct lookup *known;
	struct lookup *buckets[RESOLVE_BUCKETS];
	struct watch *watches;
	size_t count;
	uint16_t held[RESOLVE_OWNERS]; /* of `count`, for each owner */
};

/* `servers`: "192.0.2.1:53,..."; empty: those of the host. */
must_check int resolver_open(struct resolver *r, uv_loop_t *loop, const char *servers,
			     struct err *e);
void resolver_close(struct resolver *r);

/*
 * done() comes once, never from in here, unless the ask is cancelled. `owner` is the address of
 * the box that asks: a name that is not known yet is one of its share, so that it does not take
 * them all.
 */
must_check int resolve(struct resolver *r, uint32_t owner, const char *name,
		       struct resolve_ask *ask, struct err *e);
void resolve_cancel(struct resolve_ask *ask);

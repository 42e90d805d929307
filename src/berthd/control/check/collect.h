/*
 * One look: what berth-node has, then what the records say, then the
 * differences. Both change while one looks, so what seems wrong is looked at a
 * second time a moment later, and only what is then still so counts.
 */
#pragma once

#include "berthd/control/check/compare.h"
#include "berthd/runtime/reactor.h"

#define LOOK_FINDINGS_MAX 1000
#define LOOK_FACTS_MAX    100000

struct look;
typedef void look_fn(struct look *l, const struct err *why);

struct look {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	look_fn *done; /* then what was found is the caller's to read, and look_free() to call */
	void *data;

	struct check_finding *findings;
	size_t count;
	struct check_finding spare; /* for one too many: written, never read */
	size_t rows, facts;         /* how much was compared */

	struct look_world *world;
};

struct look *look_new(struct reactor *r, const char *request);
void look_begin(struct look *l, look_fn *done); /* may be called again after it was done */
void look_free(struct look *l);

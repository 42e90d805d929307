/*
 * Real slots in a router of their own: how long a claim takes (a number, a namespace, the
 * permission to speak), and how long the permission alone takes to change, with a few slots
 * alive and with many. One line of JSON; microseconds at the 99th percentile, the best of
 * some rounds, as others work on this machine, too.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/file.h"
#include "node/nft-allowlist.h"
#include "node/router.h"
#include "node/slot.h"

#define FEW     10
#define MANY    1000
#define ROUNDS  5
#define CLAIMS  100 /* a round */
#define UPDATES 2000

struct world {
	uv_loop_t loop;
	struct router router;
	struct slots slots;
	uint32_t alive[MANY + CLAIMS];
	size_t count;
};

static no_return void fail(const struct err *e)
{
	fprintf(stderr, "slots: %s\n", e->msg);
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double p99(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count * 99 / 100];
}

/* Exactly so many are warm, and nothing is being made while we look at the clock. */
static void warm(struct world *w, size_t count)
{
	w->slots.wanted = count;
	slots_warm_up(&w->slots);
	while (w->slots.warm_count < count)
		uv_run(&w->loop, UV_RUN_ONCE);
	while (w->slots.making)
		uv_run(&w->loop, UV_RUN_ONCE);
	w->slots.wanted = 0;
}

static void claim(struct world *w)
{
	uint32_t number;
	struct err e;
	int netns;

	if (slot_claim(&w->slots, &number, &netns, &e) < 0 ||
	    nft_allowlist_add(&w->router.rules, number, &e) < 0)
		fail(&e);
	w->alive[w->count++] = number; /* its namespace stays open as long as we live */
}

static void grow(struct world *w, size_t count)
{
	while (w->count < count) {
		if (w->slots.warm_count == 0)
			warm(w, count - w->count);
		claim(w);
	}
}

static double time_claims(struct world *w)
{
	double took[CLAIMS];
	size_t before = w->count;
	struct err e;

	warm(w, CLAIMS);
	for (size_t i = 0; i < CLAIMS; i++) {
		double start = now_us();

		claim(w);
		took[i] = now_us() - start;
	}
	while (w->count > before)
		if (nft_allowlist_remove(&w->router.rules, w->alive[--w->count], &e) < 0)
			fail(&e);
	return p99(took, CLAIMS);
}

static double time_updates(struct world *w)
{
	static double took[UPDATES];
	struct err e;

	for (size_t i = 0; i < UPDATES; i++) {
		uint32_t number = w->alive[i * 7919 % w->count];
		double start = now_us();

		if (nft_allowlist_remove(&w->router.rules, number, &e) < 0 ||
		    nft_allowlist_add(&w->router.rules, number, &e) < 0)
			fail(&e);
		took[i] = (now_us() - start) / 2;
	}
	return p99(took, UPDATES);
}

static void measure(struct world *w, size_t alive, double *claim_us, double *update_us)
{
	grow(w, alive);
	*claim_us = *update_us = 1e9;
	for (int i = 0; i < ROUNDS; i++) {
		double c = time_claims(w), u = time_updates(w);

		*claim_us = c < *claim_us ? c : *claim_us;
		*update_us = u < *update_us ? u : *update_us;
	}
}

int main(int argc, char **argv)
{
	struct world *w = xcalloc(1, sizeof(*w));
	double claim_few, update_few, claim_many, update_many;
	struct err e;
	int dir = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	router_init(&w->router);
	if (dir < 0 || uv_loop_init(&w->loop) < 0) {
		fprintf(stderr, "usage: slots EMPTY-DIRECTORY\n");
		return 2;
	}
	if (router_open(&w->router, dir, &e) < 0)
		fail(&e);
	w->slots.loop = &w->loop;
	w->slots.router = w->router.netns;
	if (slots_open(&w->slots, dir, &e) < 0)
		fail(&e);
	measure(w, FEW, &claim_few, &update_few);
	measure(w, MANY, &claim_many, &update_many);
	printf("{\"claim_few\":%.2f,\"claim_many\":%.2f,"
	       "\"update_few\":%.2f,\"update_many\":%.2f}\n",
	       claim_few, claim_many, update_few, update_many);
	slots_close(&w->slots);
	router_close(&w->router, dir, true);
	return 0;
}

/*
 * The other hosts of the cell, as this berthd last read them: who there is,
 * where, and in what state. Read again every few seconds; asking here never
 * waits.
 */
#pragma once

#include <pthread.h>
#include <uv.h>

#include "berthd/cluster/peer-token-seen.h"
#include "berthd/runtime/worker.h"
#include "store/cell.h"
#include "store/host.h"

#define PEERS_EVERY_MS 5000 /* divided like all times, but no more often than */
#define PEERS_LEAST_MS 200
#define PEERS_MAX      2000

struct reactor;

struct peer {
	char id[SANDBOX_HOST_SIZE];
	char address[HOST_ADDRESS_SIZE];
	enum host_lease_state state;
};

struct peers {
	pthread_mutex_t lock;
	struct peer *list;
	size_t count;
	char secret[CELL_SECRET_SIZE]; /* "": this host is no part of a cell */
	_Atomic uint64_t ahead_ms;     /* the database's clock, ahead of CLOCK_BOOTTIME */
	struct peer_token_seen seen;

	/* The first loop's own. */
	struct reactor *reactor;
	struct job job;
	uv_timer_t timer;
	bool asking, timing;
	struct peer *found;
	size_t found_count;
};

void peers_init(struct peers *p); /* after the first peers_set_now_ms(), if it is a cell */
/* From a secret on it is a cell; the list is read now and then, on this loop. */
void peers_begin(struct peers *p, struct reactor *r);
void peers_end(struct peers *p);
void peers_done(struct peers *p);

/* The cell's time, from what the database said last; it never waits. */
uint64_t peers_now_ms(struct peers *p);
void peers_set_now_ms(struct peers *p, uint64_t now_ms);

/* On a worker. A host that joined since the list was read is read by itself. */
void peers_learn(struct peers *p, struct store *s, const char *id);

/* Lost or removed: what is remembered of its sandboxes is not true any more. */
bool peers_lost(struct peers *p, const char *id);
bool peers_frozen(struct peers *p, const char *id); /* or lost, or removed: it does nothing now */

/* ERR_BUSY with a sentence if there is no such host, or no way to it. */
must_check int peers_get(struct peers *p, const char *id, struct peer *ret, struct err *e);

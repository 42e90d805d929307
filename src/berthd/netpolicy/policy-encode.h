/* A policy as the packets that tell it: made on a worker, where its secrets are opened. */
#pragma once

#include "berthd/runtime/berthd.h"
#include "proto/egress.h"
#include "store/network.h"

#define WIRE_PACKETS_MAX (1 + NETWORK_RULES_MAX + NETWORK_SECRETS_MAX)

struct wire {
	struct buf packets[WIRE_PACKETS_MAX];
	size_t count;
	uint64_t version;
	bool open;     /* it may allow something */
	char why[200]; /* it cannot be put in force: the packets close the box */
};

/* For the box that `of` names by sandbox, generation and address. */
struct wire_order {
	struct egress_policy of;
	struct wire *ret;

	/* wires_make()'s, while it reads */
	bool found, known;
	char owner[SANDBOX_OWNER_SIZE];
	struct network network;
	struct err why; /* it cannot be told */
};

/*
 * Two queries, however many there are. A row that cannot be told closes its box: only the database
 * can make this fail, and then none of them is made.
 */
must_check int wires_make(struct berthd *b, struct store *s, struct wire_order *orders,
			  size_t count, struct err *e);
void wire_done(struct wire *w);

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
	char why[200]; /* it cannot be put in force: the packets close the box */
};

/*
 * For the box that `of` names by sandbox, generation and address. A row that cannot be told
 * closes it: only the database can make this fail.
 */
must_check int wire_make(struct berthd *b, struct store *s, const struct egress_policy *of,
			 struct wire *ret, struct err *e);
void wire_done(struct wire *w);

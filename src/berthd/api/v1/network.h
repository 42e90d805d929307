/* GET and PUT /sandboxes/{id}/network, and its lock: what a sandbox may reach. */
#pragma once

#include "berthd/front/request.h"
#include "core/network.h"
#include "store/network.h"

int network_get(struct request *rq, struct store *s, struct buf *reply, struct err *e);
void network_put(struct request *rq);
void network_lock(struct request *rq);

/*
 * What a caller with this key may ask for: an address in a rule is an admin's to
 * allow.
 */
must_check int network_check(const struct key *key, const char *text, size_t len, struct err *e);

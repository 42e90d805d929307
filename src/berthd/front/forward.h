/*
 * A request that another host must answer: handed on to it whole, and its answer
 * handed back whole, as both come: bodies, event streams, upgraded connections.
 *
 * What cannot be known here is said so. A host that was never reached has done
 * nothing; one that was cut off before its answer may have; an answer that is cut
 * off never looks complete.
 */
#pragma once

#include "berthd/cluster/peers.h"
#include "berthd/front/request.h"

#define FORWARD_CONNECT_MS 3000
#define FORWARD_MOVED      "Berth-Moved" /* the sandbox is not on that host (any more) */

#define FORWARD_REFUSED    "Berth-Refused" /* that host did not take it, and wrote nothing */

/*
 * Takes the request over. Its body may have been collected already. `unreached`
 * has it again if nothing of it got to that host; NULL: then it fails.
 */
void forward_request(struct request *rq, const struct peer *to,
		     void (*unreached)(struct request *rq));

/* A create: if that host does not take it, placing_refused() has the request again. */
void forward_create(struct request *rq, const struct peer *to);

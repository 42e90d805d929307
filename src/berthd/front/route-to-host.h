/* Which host answers a request: this one, or the one its sandbox lives on. */
#pragma once

#include "berthd/front/request.h"

/*
 * Called once for every request whose key was found good, before its body is
 * read. Either calls `here` (maybe later), or hands the request to another host.
 */
void routing_decide(struct request *rq, void (*here)(struct request *rq));

/* A request that came from a peer: who asked it. ERR_DENIED if it proves nothing. */
must_check int routing_admit(struct request *rq, struct err *e);

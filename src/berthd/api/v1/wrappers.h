/*
 * Wrappers: an agent's own process tree in a sandbox, at most one of a name alive,
 * under a durable lease. core/lease says what a lease means; agent/lease-op.h carries it out.
 */
#pragma once

#include "berthd/agent/lease-op.h"
#include "berthd/front/request.h"

void wrappers_launch(struct request *rq);   /* PUT /v1/sandboxes/{}/wrappers/{} */
void wrappers_get(struct request *rq);      /* GET */
void wrappers_delete(struct request *rq);   /* DELETE */
void wrappers_ready(struct request *rq);    /* POST .../ready */
void wrappers_accepted(struct request *rq); /* POST .../accepted */
void wrappers_settled(struct request *rq);  /* POST .../settled */
void wrappers_stop(struct request *rq);     /* POST .../stop */

/* GET /v1/sandboxes/{}/wrappers, on a worker */
int wrappers_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);

/* `look` NULL: the wrapper was not looked at. */
void wrapper_json(struct buf *out, const struct wrapper *w, const struct look *look);
void wrapper_time_json(struct buf *out, const char *name, uint64_t ms); /* 0, NEVER: null */

/*
 * Persistent shells: begun, looked at and ended here; commands go to them as
 * execs do (route-exec.c).
 *
 * The record of a shell is written before the shell is begun. If the sandbox was
 * started anew meanwhile, the shell is begun again from its record when a request
 * next uses it.
 */
#pragma once

#include "berthd/front/request.h"

void shells_create(struct request *rq); /* POST   /v1/sandboxes/{}/shells */
void shells_list(struct request *rq);   /* GET    /v1/sandboxes/{}/shells */
void shells_get(struct request *rq);    /* GET    /v1/sandboxes/{}/shells/{} */
void shells_delete(struct request *rq); /* DELETE /v1/sandboxes/{}/shells/{} */

/*
 * Have this shell of rq->param there, then go on. Otherwise the request is
 * answered. A client that left meanwhile is not gone on with.
 */
void shells_ensure(struct request *rq, const char *name, void (*next)(struct request *rq));

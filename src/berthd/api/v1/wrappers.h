/* The routes of wrappers: agent/wrapper.h does what they ask. */
#pragma once

#include "berthd/front/request.h"

void wrappers_launch(struct request *rq);    /* PUT /v1/sandboxes/{}/wrappers/{} */
void wrappers_get(struct request *rq);       /* GET */
void wrappers_delete(struct request *rq);    /* DELETE */
void wrappers_ready(struct request *rq);     /* POST .../ready */
void wrappers_accepted(struct request *rq);  /* POST .../accepted */
void wrappers_settled(struct request *rq);   /* POST .../settled */
void wrappers_stop(struct request *rq);      /* POST .../stop */
void wrappers_processes(struct request *rq); /* GET .../processes */

/* GET /v1/sandboxes/{}/wrappers, on a worker */
int wrappers_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);

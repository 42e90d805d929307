/* POST /v1/sandboxes/{}/code, and the two answers it has. */
#pragma once

#include "berthd/exec/context-run.h"

void code_route(struct request *rq);

/* `ask` is taken over. */
void code_json(struct request *rq, struct code_ask *ask);   /* one answer */
void code_events(struct request *rq, struct code_ask *ask); /* a stream */

/* A run on behalf of a request; rq->data is the run until finished(). */
void code_run_for(struct request *rq, struct code_ask *ask, const struct code_sink *sink,
		  void *data);

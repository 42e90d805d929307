/* /v1/sandboxes/{}/contexts: the records, and the interpreters they stand for. */
#pragma once

#include "berthd/front/request.h"

void contexts_create(struct request *rq);
int contexts_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int contexts_get(struct request *rq, struct store *s, struct buf *reply, struct err *e);
void contexts_delete(struct request *rq);

/* /v1/policies: which sandbox an agent session gets. */
#pragma once

#include "berthd/front/request.h"

int policies_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int policies_add(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int policies_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e);

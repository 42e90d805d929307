#pragma once

#include "berthd/front/request.h"

/* GET /v1/sandboxes/{}/security: what it was refused. */
int security_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);

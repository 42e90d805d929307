/* GET /v1/security: what was tried on this cell and refused, counted. */
#pragma once

#include "berthd/front/request.h"

int incidents_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);

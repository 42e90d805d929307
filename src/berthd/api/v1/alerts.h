/* GET /v1/alerts: what a person should look at. */
#pragma once

#include "berthd/front/request.h"

int alerts_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);

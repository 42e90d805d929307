/* /v1/usage and /v1/sandboxes/{}/usage: what was used, also by those that are gone. */
#pragma once

#include "berthd/front/request.h"

int usages_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
void usages_get(struct request *rq);

#pragma once

#include "berthd/front/idempotency.h"

/* Answer like the first create under this key, waiting for it if it is under way. */
void create_replay(struct request *rq, const struct idempotency_use *use);

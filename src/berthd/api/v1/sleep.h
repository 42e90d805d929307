#pragma once

#include "berthd/front/request.h"

void sleep_route(struct request *rq); /* POST /v1/sandboxes/{}/sleep */
void wake_route(struct request *rq);  /* POST /v1/sandboxes/{}/wake */

/* /v1/health and /v1/host: how this host is. */
#pragma once

#include "berthd/front/request.h"

void host_health(struct request *rq);
void host_facts(struct request *rq);

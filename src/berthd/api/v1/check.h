/*
 * GET /v1/check, POST /v1/check/repair: this host's records beside its facts.
 * See docs/check.md for what an operator reads in it.
 */
#pragma once

#include "berthd/front/request.h"

void check_show(struct request *rq);
void check_repair(struct request *rq);

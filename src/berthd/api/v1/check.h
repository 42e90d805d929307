/*
 * GET /v1/check, POST /v1/check/repair, POST /v1/check/abandon/{id}: this host's records beside
 * its facts.
 * See docs/check.md for what an operator reads in it.
 */
#pragma once

#include "berthd/front/request.h"

void check_show(struct request *rq);
void check_repair(struct request *rq);
void check_abandon(struct request *rq); /* check-abandon.c */

/* Why nothing is said: what could not be asked. Always -1. */
int check_node_away(const struct err *why, struct err *e);

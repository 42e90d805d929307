/*
 * Sleep: a sandbox's processes are ended, its disk stays. Whatever uses it wakes
 * it; its record says which of both is under way, and goes on after a crash.
 */
#pragma once

#include "berthd/control/wait-stable.h"
#include "berthd/front/request.h"

void sleep_route(struct request *rq); /* POST /v1/sandboxes/{}/sleep */
void wake_route(struct request *rq);  /* POST /v1/sandboxes/{}/wake */

/*
 * Have it run, whatever it is in: wait for what is under way, wake what sleeps.
 * EV_USE or EV_WAKE; only the latter also starts one that failed. Ends with the
 * record of one that is ready, or with why it is not.
 */
void sleep_wake(const struct settle *how, enum sandbox_event ev);

/* States out of which sleep_wake() may lead. */
bool sleep_is_away(enum sandbox_state s);

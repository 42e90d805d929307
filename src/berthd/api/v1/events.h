/* GET /v1/events: a follower is told of every change of state of what it owns. */
#pragma once

#include "berthd/front/request.h"
#include "berthd/runtime/bus.h"

#define FOLLOWERS_HEARTBEAT_MS 15000

void events_begin(struct reactor *r);
void events_end(struct reactor *r); /* berthd is ending: end the streams */
void events_close(struct reactor *r);

void events_follow(struct request *rq); /* the route's handler */

/* To its owner's followers on this loop, and to admins. */
void events_tell(struct reactor *r, const struct bus_event *event);

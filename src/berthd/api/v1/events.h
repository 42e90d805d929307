/* GET /v1/events: whoever follows is told of every change of state of what is theirs. */
#pragma once

#include "berthd/front/request.h"
#include "core/sandbox.h"

#define FOLLOWERS_HEARTBEAT_MS 15000

void events_begin(struct reactor *r);
void events_end(struct reactor *r); /* berthd is ending: end the streams */
void events_close(struct reactor *r);

void events_follow(struct request *rq); /* the route's handler */

/* From any reactor, to the followers of all. */
/* To its owner's followers, and to admins: an event of that name. */
void events_tell(struct berthd *b, const char *owner, const char *name, const struct buf *json);
void events_publish(struct berthd *b, const struct sandbox *sb);

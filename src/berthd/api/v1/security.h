/*
 * What sandboxes were refused: told to whoever follows the events, written down,
 * and read again. The last thousand of a sandbox are kept, and `retention` longer than itself.
 */
#pragma once

#include "berthd/front/request.h"
#include "proto/egress.h"

struct security;

struct security *security_new(struct reactor *r);
void security_free(struct security *s);

/* From the first reactor. What comes faster than it can be written is counted, not kept. */
void security_take(struct security *s, const struct egress_event *ev);
void security_flush(struct security *s);
void security_forget(struct security *s, uint64_t now_ms); /* what is too old, now and then */

int security_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);

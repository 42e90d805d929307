/*
 * Where a new sandbox goes. Hosts that live, take new ones and have the image
 * are drawn; core/placement chooses; the chosen host writes the record, and only
 * then it is decided whether there is room. If there is none, or the host cannot
 * be reached, nothing was done, and the next one is asked.
 */
#pragma once

#include "berthd/front/request.h"
#include "store/host.h"

#define PLACING_TRIES 3

struct placing;

/* Calls `here` if this host is to make it, or hands the request on. */
void placing_begin(struct request *rq, void (*here)(struct request *rq));

/* Why no host takes it: `here` may only find one that is there. NULL: it may make one. */
const struct err *placing_nowhere(const struct request *rq);

/* This host did not take it, and wrote nothing. True: another one is asked. */
must_check bool placing_refused(struct request *rq, const struct err *why);

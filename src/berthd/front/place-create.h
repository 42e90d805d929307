/*
 * Where a new sandbox goes. Hosts that live, take new ones and have the image
 * are drawn; core/placement chooses; the chosen host writes the record, and only
 * then it is decided whether there is room. If there is none, or the host cannot
 * be reached, nothing was done, and the next one is asked.
 */
#pragma once

#include "berthd/front/request.h"
#include "core/limits.h"
#include "store/host.h"
#include "store/image.h"

#define PLACING_TRIES 3

struct placing;

/* What decides where it goes, and nothing else of what was asked for. */
struct placing_ask {
	char image[IMAGE_NAME_SIZE];
	char host[SANDBOX_HOST_SIZE];       /* this one or none; "": any */
	char runtime[SANDBOX_RUNTIME_SIZE]; /* "": as a policy or the host that makes it says */
	struct limits limits;               /* 0 and less: not said */
	bool may_exist;                     /* it has a name or an identity: one may be there */
};

/* False: this host makes it, and no other is asked. It is alone, or a peer has chosen it. */
must_check bool placing_is_open(const struct request *rq);

/* Calls `here` if this host is to make it, or hands the request on as it came. */
void placing_begin(struct request *rq, const struct placing_ask *ask,
		   void (*here)(struct request *rq));

/* Why no host takes it: `here` may only find one that is there. NULL: it may make one. */
const struct err *placing_nowhere(const struct request *rq);

/* This host did not take it, and wrote nothing. True: another one is asked. */
must_check bool placing_refused(struct request *rq, const struct err *why);

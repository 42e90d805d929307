#pragma once

#include "berthd/control/transition.h"
#include "berthd/front/place-create.h"
#include "berthd/front/request.h"

/* The body of a create, as it was said; checked as far as that needs no database. */
must_check int create_body_read(const struct request *rq, struct transition *c, struct err *e);

/* Of that, what decides where. False: something is wrong, and create_body_read() says what. */
must_check bool create_body_where(const struct request *rq, struct placing_ask *ret);

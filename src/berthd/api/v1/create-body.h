#pragma once

#include "berthd/control/transition.h"
#include "berthd/front/request.h"

/* The body of a create, as it was said; checked as far as that needs no database. */
must_check int create_body_read(const struct request *rq, struct transition *c, struct err *e);

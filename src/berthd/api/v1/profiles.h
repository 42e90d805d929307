/* /v1/profiles: limits by name. Everybody may look, an admin may add and remove. */
#pragma once

#include "berthd/front/request.h"

int profiles_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int profiles_get(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int profiles_put(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int profiles_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e);

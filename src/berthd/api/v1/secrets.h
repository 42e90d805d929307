/* Secrets: put, listed and removed; their values are never told again. */
#pragma once

#include "berthd/front/request.h"

int secrets_put(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int secrets_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int secrets_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e);

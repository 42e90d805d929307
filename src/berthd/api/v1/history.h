/* What became of a sandbox: the proof that it is gone, and what happened to it, step by step. */
#pragma once

#include "berthd/front/request.h"

int history_receipt(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int history_events(struct request *rq, struct store *s, struct buf *reply, struct err *e);

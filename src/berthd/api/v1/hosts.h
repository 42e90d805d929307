/* The hosts of the cell, as any of them tells: who there is, and who takes nothing new. */
#pragma once

#include "berthd/front/request.h"

int hosts_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int hosts_get(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int hosts_drain(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int hosts_undrain(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int hosts_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e);

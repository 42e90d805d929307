/* /v1/images: pull, import, list, remove. */
#pragma once

#include "berthd/front/request.h"

void images_pull(struct request *rq);   /* POST, JSON */
void images_import(struct request *rq); /* PUT, a tar as the body */
int images_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
void images_remove(struct request *rq);

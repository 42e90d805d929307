/* /v1/sandboxes/{}/terminals: see berthd/exec/terminal.h. */
#pragma once

#include "berthd/front/request.h"
#include "berthd/journal/journal.h"

void terminals_create(struct request *rq); /* POST /v1/sandboxes/{}/terminals */
int terminals_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int terminals_get(struct request *rq, struct store *s, struct buf *reply, struct err *e);
void terminals_resize(struct request *rq); /* POST .../terminals/{}/resize */
void terminals_delete(struct request *rq); /* DELETE .../terminals/{} */
void terminals_attach(struct request *rq); /* GET .../terminals/{}/attach: a WebSocket */

/* What a request may see of rq->sub in rq->param. The result is held. */
must_check int terminals_find(const struct request *rq, struct journal **ret, struct err *e);

void terminal_json(struct buf *out, struct journal *j); /* the terminal as an object */

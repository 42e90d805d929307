/* /v1/sandboxes: create, list, look, delete. */
#pragma once

#include "berthd/front/request.h"
#include "core/sandbox.h"
#include "store/sandbox.h"

void sandbox_json(struct buf *out, const struct sandbox *sb);
void sandbox_gone_json(struct buf *out, const struct tombstone *t);
void sandbox_deleting_json(struct buf *out, const struct sandbox *sb, const char *why);

void sandboxes_create(struct request *rq);
int sandboxes_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int sandboxes_get(struct request *rq, struct store *s, struct buf *reply, struct err *e);
void sandboxes_patch(struct request *rq); /* sandbox-patch.c */
void sandboxes_delete(struct request *rq);

/* /v1/keys: make one (shown once), list, revoke. */
#pragma once

#include "berthd/front/request.h"

#define KEY_SECRET_SIZE 64

int keys_create(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int keys_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int keys_revoke(struct request *rq, struct store *s, struct buf *reply, struct err *e);

/* A new key with k's name, owner and role; `secret` is all anybody will ever see of it. */
must_check int key_make(struct store *s, struct key *k, char secret[KEY_SECRET_SIZE],
			struct err *e);

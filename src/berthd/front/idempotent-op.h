/*
 * Idempotency-Key for what no record tells (files, signals): what comes again
 * under the same key has happened once, and is answered like the first.
 *
 * The key is taken before anything is done (for a write: when all of the body
 * is there, before it takes its place), the answer is stored before it is told.
 * An operation that failed has changed nothing, and gives its key back. One
 * whose end was not seen keeps it: what may be done twice (a write of the same
 * bytes, a KILL) is then simply done again; of anything else we say that we do
 * not know (504).
 */
#pragma once

#include "berthd/front/request.h"
#include "lib/hash.h"
#include "store/idempotency.h"

struct idempotent_op {
	struct idempotency_use use;
	/* Owner and key. */
	char name[SANDBOX_OWNER_SIZE + IDEMPOTENCY_KEY_SIZE];
	struct hash *hash; /* of query and body, until all of it is there */
	struct request *rq;
	struct job job;
	struct idempotency first;
	bool taken;  /* the key is ours now */
	bool again;  /* it was before */
	bool busy;   /* a job is under way: nothing may be freed */
	bool repeat; /* may be done again if its end was not seen */
	int status;
	char response[IDEMPOTENCY_RESPONSE_MAX + 1];
	void (*next)(void *data, const struct err *why);
	void *data;
};

/* NULL in *ret if the request has no key. */
must_check int idempotent_op_new(struct request *rq, struct idempotent_op **ret, struct err *e);
void idempotent_op_free(struct idempotent_op *o); /* NULL is fine */

void idempotent_op_add(struct idempotent_op *o, const void *bytes, size_t len);

/*
 * Take the key. Then next(): with `taken` set, go on; otherwise the first answer
 * is in `first`; or why neither can be.
 */
void idempotent_op_take(struct idempotent_op *o, void (*next)(void *data, const struct err *why),
			void *data);

/* Store the answer, or give the key back. Then next(). */
void idempotent_op_answer(struct idempotent_op *o, int status, const struct buf *json,
			  void (*next)(void *data, const struct err *why), void *data);
void idempotent_op_give_back(struct idempotent_op *o,
			     void (*next)(void *data, const struct err *why), void *data);

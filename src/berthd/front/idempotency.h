/*
 * Idempotency-Key: a request that comes again has happened once.
 *
 * A create takes its key with its record (transition_create()); a request that finds
 * the key taken is answered from what the first one left: api/v1/create-replay. A
 * verb that is safe to repeat takes its key before it begins, only so that the
 * key cannot mean two things: idempotency_claim(). Exec does not look at it.
 */
#pragma once

#include "berthd/front/request.h"
#include "store/idempotency.h"

/* The request's key, as it will be stored; ret->key is empty if it has none. */
must_check int idempotency_read(const struct request *rq, struct idempotency_use *ret,
				struct err *e);

/* Of owner and key, and of the body, by which what was made is found; empty without a key. */
must_check int idempotency_hashes(const struct request *rq, char key[HASH_HEX_SIZE],
				  char body[HASH_HEX_SIZE], struct err *e);

/* The answer says that it is that of an earlier request. */
void idempotency_mark(struct request *rq);

typedef void idempotency_fn(struct request *rq);

/*
 * Take the request's key for the sandbox rq->param, if it has one, then go on. If the same request
 * took it before: again(); NULL: go on, and the answer says so.
 */
void idempotency_claim(struct request *rq, idempotency_fn *next, idempotency_fn *again);

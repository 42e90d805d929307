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

/* The answer says that it is that of an earlier request. */
void idempotency_mark(struct request *rq);

/*
 * Take this key for the sandbox rq->param; `again`: it was taken before, by the same request. Of
 * a sandbox that is not there nothing can be begun: 404, and the key stays free. On a worker.
 */
must_check int idempotency_take(const struct request *rq, struct store *s,
				const struct idempotency_use *use, bool *again, struct err *e);

/* Take the request's key for the sandbox rq->param, if it has one, then go on. */
void idempotency_claim(struct request *rq, void (*next)(struct request *rq));

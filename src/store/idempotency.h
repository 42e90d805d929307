/*
 * Idempotency keys: a request that says "once", and what came of it.
 *
 * A key is its owner's. It is taken in the transaction that records the wish
 * (store_sandbox_insert() with a use), or by itself before a verb that may be
 * repeated (store_idempotency_claim()). Answers that no record tells are stored
 * with the move they belong to (struct sandbox_move).
 */
#pragma once

#include "core/sandbox.h"
#include "lib/hash.h"
#include "store/store.h"

#define IDEMPOTENCY_KEY_SIZE     129 /* with the NUL */
#define IDEMPOTENCY_REQUEST_SIZE 300
#define IDEMPOTENCY_RESPONSE_MAX 4000 /* bytes */

/* Keys of one owner; of requests at the same moment a few more. The reason of its ERR_LIMIT. */
#define STORE_IDEMPOTENCY_MAX    1000000
#define STORE_IDEMPOTENCY_FULL   "too_many_idempotency_keys"

/* One request that came with a key. */
struct idempotency_use {
	char owner[SANDBOX_OWNER_SIZE];
	char key[IDEMPOTENCY_KEY_SIZE];
	char request[IDEMPOTENCY_REQUEST_SIZE]; /* "POST /v1/sandboxes" */
	char body_hash[HASH_HEX_SIZE];
};

/* What is on record of the first one. */
struct idempotency {
	char request[IDEMPOTENCY_REQUEST_SIZE];
	char body_hash[HASH_HEX_SIZE];
	char sandbox_id[SANDBOX_ID_SIZE];
	uint64_t status; /* 0: not known yet */
	char response[IDEMPOTENCY_RESPONSE_MAX + 1];
};

/* The first answer, to be stored with a move of the sandbox that the key made. */
struct idempotency_answer {
	const struct idempotency_use *use;
	int status;
	const char *response;
};

/*
 * The first use of this key. ERR_NOT_FOUND if there was none, ERR_CONFLICT if it
 * was for another request or another body.
 */
must_check int store_idempotency_get(struct store *s, const struct idempotency_use *use,
				     struct idempotency *ret, struct err *e);

/*
 * Take the key for this sandbox. `*again`: the same request had taken it before. ERR_LIMIT if its
 * owner has too many; one that was taken before is found all the same.
 */
must_check int store_idempotency_claim(struct store *s, const struct idempotency_use *use,
				       const char *sandbox_id, bool *again, struct err *e);

/* The same, by a create that found this one: its answer is 200, and the sandbox as it is. */
must_check int store_idempotency_found(struct store *s, const struct idempotency_use *use,
				       const char *sandbox_id, struct err *e);

/* 0 if this owner may have one more key, or ERR_LIMIT. */
must_check int store_idempotency_room(struct store *s, const char *owner, struct err *e);

/* Store the first answer, if there is none yet. */
must_check int store_idempotency_answer(struct store *s, const struct idempotency_use *use,
					int status, const char *response, struct err *e);

/* Give a key back under which nothing was done: as if it had never been taken. */
must_check int store_idempotency_release(struct store *s, const struct idempotency_use *use,
					 struct err *e);

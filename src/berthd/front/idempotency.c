#include "berthd/front/idempotency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/str.h"
#include "store/sandbox.h"

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

/*
 * Which request it is: its method and its whole target, as they came if that fits,
 * as a hash otherwise. No target begins like the hash does.
 */
static void name_request(const struct request *rq, char out[IDEMPOTENCY_REQUEST_SIZE])
{
	cleanup(buf_done) struct buf target = buf_make(REQUEST_TARGET_MAX);
	char hash[HASH_HEX_SIZE];

	buf_addf(&target, "%s%s%s", rq->path, rq->query[0] ? "?" : "", rq->query);
	if (target.len < IDEMPOTENCY_REQUEST_SIZE - sizeof(rq->method) - 1) {
		snprintf(out, IDEMPOTENCY_REQUEST_SIZE, "%s %s", rq->method, buf_str(&target));
		return;
	}
	hash_hex(target.data, target.len, hash);
	snprintf(out, IDEMPOTENCY_REQUEST_SIZE, "%s sha256:%s", rq->method, hash);
}

int idempotency_read(const struct request *rq, struct idempotency_use *ret, struct err *e)
{
	const char *key = rq->x ? http_header(rq->x, "Idempotency-Key") : NULL;
	struct idempotency_use use = { 0 };

	if (!key) {
		*ret = use;
		return 0;
	}
	if (!key[0] || !is_printable(key) || !str_copy(use.key, sizeof(use.key), key))
		return err_set(e, ERR_INVALID,
			       "Idempotency-Key must have 1 to %d printable ASCII characters",
			       IDEMPOTENCY_KEY_SIZE - 1);
	name_request(rq, use.request);
	memcpy(use.owner, rq->key.owner, sizeof(use.owner));
	hash_hex(buf_str(&rq->body), rq->body.len, use.body_hash);
	*ret = use;
	return 0;
}

int idempotency_hashes(const struct request *rq, char key[HASH_HEX_SIZE],
		       char body[HASH_HEX_SIZE], struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(1024);
	struct idempotency_use use = { 0 };

	if (idempotency_read(rq, &use, e) < 0)
		return -1;
	key[0] = body[0] = '\0';
	if (!use.key[0])
		return 0;
	buf_addf(&text, "%s\n%s", use.owner, use.key);
	hash_hex(text.data, text.len, key);
	memcpy(body, use.body_hash, HASH_HEX_SIZE);
	return 0;
}

void idempotency_mark(struct request *rq)
{
	if (rq->x)
		(void)!http_reply_header(rq->x, "Idempotency-Replayed", "true");
}

struct claim {
	struct job job;
	struct request *rq;
	struct idempotency_use use;
	idempotency_fn *next, *again;
	bool used;
};

/* Of a sandbox that is not there nothing can be begun: 404, and the key stays free. */
static int take(struct claim *c, struct store *s, struct err *e)
{
	const struct request *rq = c->rq;
	struct idempotency first;
	struct sandbox sb;
	struct err why;

	if (sandbox_id_check(rq->param, e) < 0)
		return -1;
	if (store_sandbox_get(s, request_owner(rq), rq->param, &sb, e) < 0) {
		if (e->code == ERR_NOT_FOUND &&
		    store_idempotency_get(s, &c->use, &first, &why) < 0 && why.code == ERR_CONFLICT)
			*e = why; /* a key of another request is that, wherever it is used */
		return -1;
	}
	return store_idempotency_claim(s, &c->use, rq->param, &c->used, e);
}

static int take_key(struct job *job, struct store *s, struct err *e)
{
	struct claim *c = container_of(job, struct claim, job);

	if (take(c, s, e) < 0)
		return -1;
	crash_point("life.key-taken");
	return 0;
}

static void on_key_taken(struct job *job)
{
	cleanup(free_ptr) struct claim *c = container_of(job, struct claim, job);

	if (job->failed)
		return request_fail(c->rq, &job->e);
	if (c->used && c->again)
		return c->again(c->rq);
	if (c->used)
		idempotency_mark(c->rq);
	c->next(c->rq);
}

void idempotency_claim(struct request *rq, idempotency_fn *next, idempotency_fn *again)
{
	struct idempotency_use use = { 0 };
	struct claim *c;
	struct err e;

	if (idempotency_read(rq, &use, &e) < 0)
		return request_fail(rq, &e);
	if (!use.key[0])
		return next(rq);
	c = xcalloc(1, sizeof(*c));
	c->rq = rq;
	c->use = use;
	c->next = next;
	c->again = again;
	job_submit(rq->reactor, request_owner(rq), &c->job, take_key, on_key_taken);
}

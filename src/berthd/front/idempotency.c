#include "berthd/front/idempotency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/sandboxes.h"
#include "berthd/control/wait-stable.h"
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

static void mark_replayed(struct request *rq)
{
	if (rq->x)
		(void)!http_reply_header(rq->x, "Idempotency-Replayed", "true");
}

/* ---- a create that came before ---- */

struct replay {
	struct request *rq;
	struct idempotency_use use;
	struct job job;
	struct idempotency first;
	bool again; /* looked at once more after it had failed */
	struct sandbox sb;
};

/* The request is the caller's to answer. */
static struct request *replay_end(struct replay *r)
{
	struct request *rq = r->rq;

	mark_replayed(rq);
	free(r);
	return rq;
}

static void answer_stored(struct replay *r)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	int status = (int)r->first.status;

	buf_adds(&body, r->first.response);
	request_reply(replay_end(r), status, &body);
}

static void on_settled(void *data, const struct sandbox *sb, const struct err *why)
{
	struct replay *r = data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct err e;

	if (why) {
		e = *why;
		err_wrap(&e, "made by this Idempotency-Key");
		return request_fail(replay_end(r), &e);
	}
	if (sb->state == SANDBOX_READY || sb->state == SANDBOX_ASLEEP) {
		int status = r->first.status ? (int)r->first.status : 201;

		sandbox_json(&body, sb);
		return request_reply(replay_end(r), status, &body);
	}
	err_set(&e, ERR_CONFLICT, "%s, made by this Idempotency-Key, is %s%s%s", sb->id,
		sandbox_state_name(sb->state), sb->reason[0] ? ": " : "", sb->reason);
	err_fix(&e, "A key makes one sandbox in its life; take a new key for another one.");
	request_fail(replay_end(r), &e);
}

static int look(struct job *job, struct store *s, struct err *e)
{
	struct replay *r = container_of(job, struct replay, job);

	return store_idempotency_get(s, &r->use, &r->first, e);
}

static void on_looked(struct job *job);

/* It failed while this waited for it: its answer is stored now. */
static void on_settled_look_again(void *data, const struct sandbox *sb, const struct err *why)
{
	struct replay *r = data;

	if (why || sb->state != SANDBOX_FAILED)
		return on_settled(data, sb, why);
	r->job = (struct job){ .reactor = r->rq->reactor, .run = look, .done = on_looked };
	r->again = true;
	r->sb = *sb;
	worker_submit(&r->rq->reactor->berthd->workers, &r->job);
}

static void on_looked(struct job *job)
{
	struct replay *r = container_of(job, struct replay, job);
	struct settle how = {
		.reactor = r->rq->reactor,
		.request = r->rq->id,
		.sandbox = r->first.sandbox_id,
		.use = &r->use,
		.done = on_settled_look_again,
		.data = r,
	};
	struct request *rq = r->rq;
	struct err e;

	if (job->failed) {
		e = job->e;
		free(r);
		return request_fail(rq, &e);
	}
	if (r->first.response[0])
		return answer_stored(r);
	crash_point("life.first-use-read");
	if (r->again)
		return on_settled(r, &r->sb, NULL);
	settle_begin(&how);
}

void idempotency_replay(struct request *rq, const struct idempotency_use *use)
{
	struct replay *r = xcalloc(1, sizeof(*r));

	r->rq = rq;
	r->use = *use;
	r->job = (struct job){ .reactor = rq->reactor, .run = look, .done = on_looked };
	worker_submit(&rq->reactor->berthd->workers, &r->job);
}

/* ---- a verb that may be repeated ---- */

struct claim {
	struct job job;
	struct request *rq;
	struct idempotency_use use;
	bool again;
	void (*next)(struct request *rq);
};

static int take_key(struct job *job, struct store *s, struct err *e)
{
	struct claim *c = container_of(job, struct claim, job);

	if (store_idempotency_claim(s, &c->use, c->rq->param, &c->again, e) < 0)
		return -1;
	crash_point("life.key-taken");
	return 0;
}

static void on_key_taken(struct job *job)
{
	cleanup(free_ptr) struct claim *c = container_of(job, struct claim, job);

	if (job->failed)
		return request_fail(c->rq, &job->e);
	if (c->again)
		mark_replayed(c->rq);
	c->next(c->rq);
}

void idempotency_claim(struct request *rq, void (*next)(struct request *rq))
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
	c->job = (struct job){ .reactor = rq->reactor, .run = take_key, .done = on_key_taken };
	worker_submit(&rq->reactor->berthd->workers, &c->job);
}

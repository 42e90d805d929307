#include "api/life/idempotency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/berthd.h"
#include "api/life/resume.h"
#include "api/life/sandboxes.h"
#include "lib/crash.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"

#define WAIT_MS       10000 /* for a create that is under way, then the client asks again */
#define LOOK_FIRST_MS 20    /* from one look to the next, doubling */
#define LOOK_LAST_MS  320

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
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
	snprintf(use.request, sizeof(use.request), "%s %s", rq->method, rq->path);
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
	uv_timer_t timer; /* the next look */
	uint64_t give_up_ms, pause_ms;
	struct idempotency first;
	struct sandbox sb; /* what it made, as it is now */
};

static void on_replay_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* The request is the caller's to answer. */
static struct request *replay_end(struct replay *r)
{
	struct request *rq = r->rq;

	uv_close((uv_handle_t *)&r->timer, on_replay_closed);
	return rq;
}

static int look(struct job *job, struct store *s, struct err *e)
{
	struct replay *r = container_of(job, struct replay, job);

	if (store_idempotency_get(s, &r->use, &r->first, e) < 0)
		return -1;
	if (r->first.status != 0)
		return 0;
	return store_sandbox_get(s, r->use.owner, r->first.sandbox_id, &r->sb, e);
}

static void on_looked(struct job *job);

static void look_again(struct replay *r)
{
	r->job = (struct job){ .reactor = r->rq->reactor, .run = look, .done = on_looked };
	worker_submit(&r->rq->reactor->berthd->workers, &r->job);
}

static void on_time_to_look(uv_timer_t *timer)
{
	struct replay *r = timer->data;

	if (!r->rq->x) /* nobody waits for it any more */
		return request_end(replay_end(r), 499);
	look_again(r);
}

static void answer_stored(struct replay *r)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	int status = (int)r->first.status;

	buf_adds(&body, r->first.response);
	mark_replayed(r->rq);
	request_reply(replay_end(r), status, &body);
}

static void answer_ready(struct replay *r)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	sandbox_json(&body, &r->sb);
	mark_replayed(r->rq);
	request_reply(replay_end(r), 201, &body);
}

static void wait_a_little(void *data)
{
	struct replay *r = data;

	uv_timer_start(&r->timer, on_time_to_look, r->pause_ms, 0);
	r->pause_ms = r->pause_ms < LOOK_LAST_MS ? r->pause_ms * 2 : LOOK_LAST_MS;
}

static void answer_creating(struct replay *r)
{
	struct resume how = {
		.reactor = r->rq->reactor,
		.request = r->rq->id,
		.sb = &r->sb,
		.use = &r->use,
		.done = wait_a_little,
		.data = r,
	};
	struct err e;

	if (time_mono_ms() < r->give_up_ms) {
		if (resume_possible(how.reactor, how.sb))
			return resume_create(&how);
		return wait_a_little(r);
	}
	err_set(&e, ERR_BUSY, "%s, made by this Idempotency-Key, is still being created",
		r->sb.id);
	err_fix(&e, "Send the same request with the same key again.");
	mark_replayed(r->rq);
	request_fail(replay_end(r), &e);
}

static void answer_over(struct replay *r)
{
	struct err e;

	err_set(&e, ERR_CONFLICT, "%s, made by this Idempotency-Key, is %s%s%s", r->sb.id,
		sandbox_state_name(r->sb.state), r->sb.reason[0] ? ": " : "", r->sb.reason);
	err_fix(&e, "A key makes one sandbox in its life; take a new key for another one.");
	mark_replayed(r->rq);
	request_fail(replay_end(r), &e);
}

static void (*const answers[SANDBOX_STATE_COUNT])(struct replay *r) = {
	[SANDBOX_CREATING] = answer_creating,
	[SANDBOX_READY] = answer_ready,
	[SANDBOX_DELETING] = answer_over,
	[SANDBOX_FAILED] = answer_over,
	[SANDBOX_GONE] = answer_over,
};

static void on_looked(struct job *job)
{
	struct replay *r = container_of(job, struct replay, job);
	struct err e;

	if (job->failed) {
		e = job->e;
		return request_fail(replay_end(r), &e);
	}
	if (r->first.status != 0)
		return answer_stored(r);
	crash_point("life.first-use-read");
	answers[r->sb.state](r);
}

void idempotency_replay(struct request *rq, const struct idempotency_use *use)
{
	struct replay *r = xcalloc(1, sizeof(*r));

	r->rq = rq;
	r->use = *use;
	r->give_up_ms = time_mono_ms() + WAIT_MS;
	r->pause_ms = LOOK_FIRST_MS;
	uv_timer_init(&rq->reactor->loop, &r->timer);
	r->timer.data = r;
	look_again(r);
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

#include "berthd/api/v1/create-replay.h"

#include <stdlib.h>

#include "berthd/api/v1/sandboxes.h"
#include "berthd/control/wait-stable.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "store/sandbox.h"

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

	idempotency_mark(rq);
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
	r->again = true;
	r->sb = *sb;
	job_submit(r->rq->reactor, request_owner(r->rq), &r->job, look, on_looked);
}

static void on_looked(struct job *job)
{
	struct replay *r = container_of(job, struct replay, job);
	struct wait_stable how = {
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
	wait_stable_begin(&how);
}

void create_replay(struct request *rq, const struct idempotency_use *use)
{
	struct replay *r = xcalloc(1, sizeof(*r));

	r->rq = rq;
	r->use = *use;
	job_submit(rq->reactor, request_owner(rq), &r->job, look, on_looked);
}

#include "berthd/api/v1/sleep.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/sandboxes.h"
#include "berthd/control/wake.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"

static void answer(void *data, const struct sandbox *sb, const struct err *why)
{
	struct request *rq = data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	if (why)
		return request_fail(rq, why);
	sandbox_json(&body, sb);
	request_reply(rq, 200, &body);
}

static void on_slept(struct transition *c, const struct err *why)
{
	struct request *rq = c->data;
	struct wait_stable how = {
		.reactor = c->reactor,
		.request = c->request,
		.sandbox = c->sb.id,
		.done = answer,
		.data = rq,
	};
	struct err e;

	if (why) {
		e = *why;
		transition_free(c);
		return request_fail(rq, &e);
	}
	wait_stable_begin(&how); /* at once, unless another change is putting it to sleep */
	transition_free(c);
}

static void begin_sleep(struct request *rq)
{
	struct transition *c = transition_new(rq->reactor, rq->id);

	memcpy(c->sb.id, rq->param, sizeof(c->sb.id));
	c->owner = request_owner(rq);
	c->data = rq;
	transition_event(c, EV_SLEEP, "asked to sleep", on_slept);
}

void sleep_route(struct request *rq)
{
	idempotency_claim(rq, begin_sleep, NULL);
}

/* No earlier step has asked whose sandbox it is. */
struct owned {
	struct job job;
	struct request *rq;
	struct sandbox sb;
};

static int read_owned(struct job *job, struct store *s, struct err *e)
{
	struct owned *o = container_of(job, struct owned, job);

	if (store_sandbox_get(s, request_owner(o->rq), o->rq->param, &o->sb, e) < 0)
		return -1;
	if (o->sb.state == SANDBOX_GONE)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s was deleted", o->sb.id);
	if (o->sb.state == SANDBOX_FAILED && !o->sb.files_kept)
		return sandbox_failed_error(&o->sb, e);
	return 0;
}

static void on_owned(struct job *job)
{
	struct owned *o = container_of(job, struct owned, job);
	struct request *rq = o->rq;
	struct wait_stable how = {
		.reactor = rq->reactor,
		.request = rq->id,
		.sandbox = o->sb.id,
		.done = answer,
		.data = rq,
	};
	struct err e = job->e;

	if (job->failed)
		request_fail(rq, &e);
	else
		control_wake(&how, EV_WAKE);
	free(o);
}

static void begin_wake(struct request *rq)
{
	struct owned *o = xcalloc(1, sizeof(*o));

	o->rq = rq;
	job_submit(rq->reactor, request_owner(rq), &o->job, read_owned, on_owned);
}

void wake_route(struct request *rq)
{
	idempotency_claim(rq, begin_wake, NULL);
}

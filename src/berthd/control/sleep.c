#include "berthd/control/sleep.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/sandboxes.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "lib/str.h"

#define WAKE_TRIES 4 /* while others put it to sleep again */

bool sleep_is_away(enum sandbox_state s)
{
	return s == SANDBOX_ASLEEP || s == SANDBOX_FALLING_ASLEEP || s == SANDBOX_WAKING;
}

struct wake {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	char id[SANDBOX_ID_SIZE];
	enum sandbox_event ev;
	int tries;
	settle_fn *done;
	void *data;
};

static void on_settled(void *data, const struct sandbox *sb, const struct err *why);

static void settle(struct wake *w)
{
	struct settle how = {
		.reactor = w->reactor,
		.request = w->request,
		.sandbox = w->id,
		.done = on_settled,
		.data = w,
	};

	settle_begin(&how);
}

static void wake_end(struct wake *w, const struct sandbox *sb, const struct err *why)
{
	w->done(w->data, sb, why);
	free(w);
}

static void on_woken(struct change *c, const struct err *why)
{
	struct wake *w = c->data;
	bool again = why && (why->code == ERR_CONFLICT || why->code == ERR_BUSY) &&
		     ++w->tries < WAKE_TRIES;

	if (again || (!why && c->sb.state != SANDBOX_READY))
		settle(w);
	else
		wake_end(w, &c->sb, why);
	change_free(c);
}

static void on_settled(void *data, const struct sandbox *sb, const struct err *why)
{
	struct wake *w = data;
	struct change *c;

	if (why || sb->state == SANDBOX_READY)
		return wake_end(w, sb, why);
	c = change_new(w->reactor, w->request);
	c->sb = *sb;
	c->data = w;
	change_event(c, w->ev, NULL, on_woken);
}

void sleep_wake(const struct settle *how, enum sandbox_event ev)
{
	struct wake *w = xcalloc(1, sizeof(*w));

	w->reactor = how->reactor;
	(void)!str_copy(w->request, sizeof(w->request), how->request);
	(void)!str_copy(w->id, sizeof(w->id), how->sandbox);
	w->ev = ev;
	w->done = how->done;
	w->data = how->data;
	settle(w);
}

/* ---- the routes ---- */

static void answer(void *data, const struct sandbox *sb, const struct err *why)
{
	struct request *rq = data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	if (why)
		return request_fail(rq, why);
	sandbox_json(&body, sb);
	request_reply(rq, 200, &body);
}

static void on_slept(struct change *c, const struct err *why)
{
	struct request *rq = c->data;
	struct settle how = {
		.reactor = c->reactor,
		.request = c->request,
		.sandbox = c->sb.id,
		.done = answer,
		.data = rq,
	};
	struct err e;

	if (why) {
		e = *why;
		change_free(c);
		return request_fail(rq, &e);
	}
	settle_begin(&how); /* at once, unless somebody else is putting it to sleep */
	change_free(c);
}

static void begin_sleep(struct request *rq)
{
	struct change *c = change_new(rq->reactor, rq->id);

	memcpy(c->sb.id, rq->param, sizeof(c->sb.id));
	c->owner = request_owner(rq);
	c->data = rq;
	change_event(c, EV_SLEEP, "asked to sleep", on_slept);
}

void sleep_route(struct request *rq)
{
	idempotency_claim(rq, begin_sleep);
}

/* Whose it is was asked by nobody yet. */
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
	struct settle how = {
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
		sleep_wake(&how, EV_WAKE);
	free(o);
}

static void begin_wake(struct request *rq)
{
	struct owned *o = xcalloc(1, sizeof(*o));

	o->rq = rq;
	o->job = (struct job){ .reactor = rq->reactor, .run = read_owned, .done = on_owned };
	worker_submit(&rq->reactor->berthd->workers, &o->job);
}

void wake_route(struct request *rq)
{
	idempotency_claim(rq, begin_wake);
}

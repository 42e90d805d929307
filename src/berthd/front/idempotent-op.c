#include "berthd/front/idempotent-op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/control/inflight.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/errno-map.h"

int idempotent_op_new(struct request *rq, struct idempotent_op **ret, struct err *e)
{
	struct idempotency_use use = { 0 };
	struct idempotent_op *o;

	*ret = NULL;
	if (idempotency_read(rq, &use, e) < 0)
		return -1;
	if (!use.key[0])
		return 0;
	o = xcalloc(1, sizeof(*o));
	o->use = use;
	o->rq = rq;
	o->hash = hash_new();
	snprintf(o->name, sizeof(o->name), "%s %s", use.owner, use.key);
	idempotent_op_add(o, rq->x->query, strlen(rq->x->query));
	idempotent_op_add(o, "\n", 1);
	idempotent_op_add(o, buf_str(&rq->body), rq->body.len);
	*ret = o;
	return 0;
}

void idempotent_op_free(struct idempotent_op *o)
{
	if (!o)
		return;
	if (o->taken)
		inflight_remove(o->rq->reactor->berthd->inflight_keys, o->name);
	hash_free(o->hash);
	free(o);
}

void idempotent_op_add(struct idempotent_op *o, const void *bytes, size_t len)
{
	hash_add(o->hash, bytes, len);
}

static void on_done(struct job *job)
{
	struct idempotent_op *o = container_of(job, struct idempotent_op, job);
	struct err e = job->e;

	o->busy = false;
	o->next(o->data, job->failed ? &e : NULL);
}

static void submit(struct idempotent_op *o, int (*run)(struct job *, struct store *, struct err *),
		   void (*next)(void *data, const struct err *why), void *data)
{
	o->busy = true;
	o->next = next;
	o->data = data;
	job_submit(o->rq->reactor, request_owner(o->rq), &o->job, run, on_done);
}

static int take(struct idempotent_op *o, struct store *s, struct err *e)
{
	if (store_idempotency_claim(s, &o->use, o->rq->param, &o->again, e) < 0)
		return -1;
	crash_point("life.once-taken");
	if (o->again && store_idempotency_get(s, &o->use, &o->first, e) < 0)
		return -1;
	o->taken = !o->again || (o->first.status == 0 && o->repeat);
	return 0;
}

static int run_take(struct job *job, struct store *s, struct err *e)
{
	struct idempotent_op *o = container_of(job, struct idempotent_op, job);
	struct inflight *at_work = o->rq->reactor->berthd->inflight_keys;
	int n;

	inflight_add(at_work, o->name); /* before it is taken: the second request sees the first */
	n = take(o, s, e);
	if (!o->taken)
		inflight_remove(at_work, o->name);
	if (n < 0 || o->taken || o->first.status != 0)
		return n;
	if (inflight_has(at_work, o->name)) {
		err_set(e, ERR_BUSY, "the first request with this Idempotency-Key is under way");
		return err_reason(e, REASON_UNDER_WAY, 0);
	}
	err_set(e, ERR_TIMEOUT,
		"the end of the first request with this Idempotency-Key was not seen");
	return err_fix(e, "Look at what is there, and use a new key for what is still to be done.");
}

void idempotent_op_take(struct idempotent_op *o, void (*next)(void *data, const struct err *why),
			void *data)
{
	hash_end_hex(o->hash, o->use.body_hash);
	submit(o, run_take, next, data);
}

static int run_answer(struct job *job, struct store *s, struct err *e)
{
	struct idempotent_op *o = container_of(job, struct idempotent_op, job);

	if (store_idempotency_answer(s, &o->use, o->status, o->response, e) < 0)
		return -1;
	crash_point("life.once-answered");
	return 0;
}

void idempotent_op_answer(struct idempotent_op *o, int status, const struct buf *json,
			  void (*next)(void *data, const struct err *why), void *data)
{
	if (json->len > IDEMPOTENCY_RESPONSE_MAX) /* a path of thousands of bytes: told, not kept */
		return next(data, NULL);
	o->status = status;
	memcpy(o->response, buf_str(json), json->len + 1);
	submit(o, run_answer, next, data);
}

static int run_give_back(struct job *job, struct store *s, struct err *e)
{
	struct idempotent_op *o = container_of(job, struct idempotent_op, job);

	return store_idempotency_release(s, &o->use, e);
}

void idempotent_op_give_back(struct idempotent_op *o,
			     void (*next)(void *data, const struct err *why), void *data)
{
	submit(o, run_give_back, next, data);
}

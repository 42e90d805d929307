/* POST /v1/check/abandon/{id}: what is on this host without a record is removed, with one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/check.h"
#include "berthd/api/v1/sandboxes.h"
#include "berthd/control/check/collect.h"
#include "berthd/control/deletion.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"

struct abandoning {
	struct request *rq;
	struct check_finding orphan; /* its latest generation; 0: none is here */
};

static struct request *end(struct abandoning *a)
{
	struct request *rq = a->rq;

	free(a);
	return rq;
}

static void reply_json(struct buf *out, const struct abandoning *a, const struct transition *c,
		       const struct err *pending)
{
	json_open(out, '{');
	json_str(out, "host", c->reactor->berthd->settings.host);
	json_str(out, "found", a->orphan.fact);
	json_key(out, "sandbox");
	if (pending)
		sandbox_deleting_json(out, &c->sb, pending->msg);
	else
		sandbox_gone_json(out, &c->tomb);
	buf_adds(out, "}");
}

static void on_ended(struct transition *c, const struct err *why)
{
	struct abandoning *a = c->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	bool pending = why && c->sb.state == SANDBOX_DELETING;
	struct err e = why ? *why : (struct err){ 0 };

	if (pending || !why)
		reply_json(&body, a, c, why);
	transition_free(c);
	if (why && !pending)
		return request_fail(end(a), &e);
	request_reply(end(a), pending ? 202 : 200, &body);
}

static void keep_latest(struct abandoning *a, const struct look *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct check_finding *f = &l->findings[i];

		if (f->kind == CHECK_ORPHAN && strcmp(f->what, a->rq->param) == 0 &&
		    f->generation > a->orphan.generation)
			a->orphan = *f;
	}
}

static void on_looked(struct look *l, const struct err *why)
{
	struct abandoning *a = l->data;
	struct transition *c;
	char reason[SANDBOX_REASON_SIZE];
	struct err e;

	if (why) {
		(void)check_node_away(why, &e);
		look_free(l);
		return request_fail(end(a), &e);
	}
	keep_latest(a, l);
	look_free(l);
	c = transition_new(a->rq->reactor, a->rq->id);
	memcpy(c->sb.id, a->rq->param, sizeof(c->sb.id));
	memcpy(c->sb.owner, a->rq->key.owner, sizeof(c->sb.owner));
	c->sb.generation = a->orphan.generation;
	c->data = a;
	snprintf(reason, sizeof(reason), "no record named it: abandoned with key %s",
		 a->rq->key.id);
	deletion_abandon(c, reason, on_ended);
}

void check_abandon(struct request *rq)
{
	struct abandoning *a;
	struct look *l;
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	a = xcalloc(1, sizeof(*a));
	a->rq = rq;
	l = look_new(rq->reactor, rq->id);
	l->data = a;
	look_begin(l, on_looked);
}

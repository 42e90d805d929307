#include "berthd/api/v1/check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/control/check/collect.h"
#include "berthd/control/deletion.h"
#include "berthd/control/reconcile.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/time.h"
#include "store/image.h"

#define WAIT_MS 60000 /* for what a repair began to be over */
#define LOOK_MS 50

/* ---- telling ---- */

static unsigned count_of(const struct look *l, unsigned invariant)
{
	unsigned count = 0;

	for (size_t i = 0; i < l->count; i++)
		count += check_kind_row(l->findings[i].kind)->invariant == invariant;
	return count;
}

static const char *law_state(const struct look *l, unsigned number)
{
	if (count_of(l, number) > 0)
		return "violated";
	return check_invariant_unchecked(number) ? "not checked" : "holds";
}

static void invariants_json(struct buf *out, const struct look *l)
{
	json_key(out, "invariants");
	json_open(out, '[');
	for (unsigned i = 1; i <= CHECK_INVARIANTS; i++) {
		json_open(out, '{');
		json_int(out, "number", i);
		json_str(out, "name", check_invariant_name(i));
		json_str(out, "state", law_state(l, i));
		if (check_invariant_unchecked(i))
			json_str(out, "why", check_invariant_unchecked(i));
		buf_adds(out, "}");
	}
	buf_adds(out, "]");
}

static void findings_json(struct buf *out, const char *name, const struct look *l)
{
	json_key(out, name);
	json_open(out, '[');
	for (size_t i = 0; i < l->count; i++)
		check_finding_json(out, &l->findings[i]);
	buf_adds(out, "]");
}

static void look_json(struct buf *out, const struct look *l)
{
	char now[TIME_TEXT_SIZE];

	time_text(time_wall_ms(), now);
	json_open(out, '{');
	json_str(out, "checked_at", now);
	json_str(out, "host", l->reactor->berthd->settings.host);
	json_bool(out, "ok", l->count == 0);
	json_int(out, "records", (int64_t)l->rows);
	json_int(out, "facts", (int64_t)l->facts);
	invariants_json(out, l);
	findings_json(out, "findings", l);
}

int check_node_away(const struct err *why, struct err *e)
{
	*e = *why;
	err_wrap(e, "nothing can be said about this host");
	return err_fix(e, "Without berth-node and the database everything is unknown: "
			  "`berth doctor` tells which is away.");
}

static void on_shown(struct look *l, const struct err *why)
{
	struct request *rq = l->data;
	cleanup(buf_done) struct buf out = buf_make(REPLY_MAX);
	struct err e;

	if (why) {
		(void)check_node_away(why, &e);
		look_free(l);
		return request_fail(rq, &e);
	}
	look_json(&out, l);
	buf_adds(&out, "}");
	look_free(l);
	request_reply(rq, 200, &out);
}

void check_show(struct request *rq)
{
	struct look *l = look_new(rq->reactor, rq->id);

	l->data = rq;
	look_begin(l, on_shown);
}

/* ---- repairing: what the records intend, now ---- */

struct repair {
	struct request *rq;
	struct look *before, *after;
	size_t next;    /* finding */
	unsigned begun; /* deletions under way */
	bool tidies;    /* we hold berthd->image_tidying */
	uint64_t give_up_ms;
	uv_timer_t timer;
	struct job job;
	const char *digest;
	bool unused;
};

static void on_repair_closed(uv_handle_t *handle)
{
	struct repair *r = handle->data;

	look_free(r->before);
	if (r->after)
		look_free(r->after);
	free(r);
}

static struct request *repair_end(struct repair *r)
{
	struct request *rq = r->rq;

	if (r->tidies)
		rq->reactor->berthd->image_tidying = false;
	uv_close((uv_handle_t *)&r->timer, on_repair_closed);
	return rq;
}

static void on_looked_after(struct look *l, const struct err *why)
{
	struct repair *r = l->data;
	cleanup(buf_done) struct buf out = buf_make(REPLY_MAX);
	struct err e;

	if (why) {
		(void)check_node_away(why, &e);
		return request_fail(repair_end(r), &e);
	}
	look_json(&out, l);
	findings_json(&out, "before", r->before);
	buf_adds(&out, "}");
	request_reply(repair_end(r), 200, &out);
}

static void look_after(struct repair *r)
{
	r->after = look_new(r->rq->reactor, r->rq->id);
	r->after->data = r;
	look_begin(r->after, on_looked_after);
}

/*
 * By the clock: the look at everything is the first loop's, which keeps no list of requests that
 * wait for its end. One atomic is read, for one request of an operator, and WAIT_MS ends it.
 */
static void on_wait(uv_timer_t *timer)
{
	struct repair *r = timer->data;
	const struct berthd *b = r->rq->reactor->berthd;

	if ((r->begun == 0 && !reconcile_looks(b->reconcile)) || time_mono_ms() > r->give_up_ms) {
		if (r->begun == 0) { /* else their callbacks still come to us */
			uv_timer_stop(timer);
			look_after(r);
		}
	}
}

static void on_deletion(struct transition *c, const struct err *why)
{
	struct repair *r = c->data;

	(void)why; /* the second look tells how it went */
	transition_free(c);
	r->begun--;
}

static void delete_again(struct repair *r, const struct check_finding *f)
{
	struct transition *c = transition_new(r->rq->reactor, r->rq->id);

	memcpy(c->sb.id, f->what, sizeof(c->sb.id));
	c->data = r;
	r->begun++;
	deletion_ask(c, on_deletion);
}

static void go_on(struct repair *r);

static void on_forgotten(void *data, const union node_any *record, int *fd, const struct err *why)
{
	(void)record, (void)fd, (void)why; /* the second look tells */
	go_on(data);
}

static const struct node_call_events forget_events = { .on_done = on_forgotten };

static int ask_unused(struct job *job, struct store *s, struct err *e)
{
	struct repair *r = container_of(job, struct repair, job);

	return store_digest_is_unused(s, r->digest, &r->unused, e);
}

static void on_unused(struct job *job)
{
	struct repair *r = container_of(job, struct repair, job);
	struct node_image_ask ask = { .op = IMAGE_REMOVE };

	if (job->failed || !r->unused)
		return go_on(r);
	memcpy(ask.request, r->rq->id, sizeof(r->rq->id));
	memcpy(ask.digest, r->digest, sizeof(ask.digest));
	node_call(&r->rq->reactor->node, NODE_IMAGE, &ask, -1, &forget_events, r);
}

/* Only while no image is being made: one that is has files and no name yet. */
static bool forget_image(struct repair *r, const struct check_finding *f)
{
	struct berthd *b = r->rq->reactor->berthd;
	bool tidying = false;

	if (!r->tidies && !atomic_compare_exchange_strong(&b->image_tidying, &tidying, true))
		return false;
	r->tidies = true;
	if (b->image_works > 0)
		return false;
	r->digest = f->what;
	job_submit(r->rq->reactor, request_owner(r->rq), &r->job, ask_unused, on_unused);
	return true;
}

/* One finding after the other; then everything is compared, as after a restart. */
static void go_on(struct repair *r)
{
	while (r->next < r->before->count) {
		const struct check_finding *f = &r->before->findings[r->next++];
		enum check_repair what = check_kind_row(f->kind)->repair;

		if (what == REPAIR_DELETE)
			delete_again(r, f);
		if (what == REPAIR_FORGET && forget_image(r, f))
			return;
	}
	reconcile_look(r->rq->reactor->berthd->reconcile);
	r->give_up_ms = time_mono_ms() + WAIT_MS;
	uv_timer_start(&r->timer, on_wait, LOOK_MS, LOOK_MS);
}

static void on_looked_before(struct look *l, const struct err *why)
{
	struct repair *r = l->data;
	struct err e;

	if (!why)
		return go_on(r);
	(void)check_node_away(why, &e);
	request_fail(repair_end(r), &e);
}

void check_repair(struct request *rq)
{
	struct repair *r = xcalloc(1, sizeof(*r));

	r->rq = rq;
	uv_timer_init(&rq->reactor->loop, &r->timer);
	r->timer.data = r;
	r->before = look_new(rq->reactor, rq->id);
	r->before->data = r;
	look_begin(r->before, on_looked_before);
}

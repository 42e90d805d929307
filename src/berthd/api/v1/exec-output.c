/* GET /v1/sandboxes/{}/execs/{}/output: what it said, from any position on. */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/exec-replies.h"
#include "berthd/api/v1/execs.h"
#include "berthd/api/v1/kept-output.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"

#define PAGE_MAX (1024UL * 1024) /* of both streams in one JSON answer */

/* ---- in one piece ---- */

struct page {
	struct request *rq;
	struct tail *tail;
	struct buf out[2];
	uint64_t from, next, gap;
	int only;
	bool follow;
};

/* The request is the caller's to answer. */
static struct request *page_free(struct page *p)
{
	struct request *rq = p->rq;

	tail_close(p->tail);
	buf_done(&p->out[0]);
	buf_done(&p->out[1]);
	free(p);
	return rq;
}

static void answer(struct page *p, bool ended)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	json_open(&body, '{');
	stream_json(&body, "stdout", &p->out[0], false);
	stream_json(&body, "stderr", &p->out[1], false);
	json_int(&body, "from", (int64_t)p->from);
	json_int(&body, "next", (int64_t)p->next);
	json_int(&body, "gap_bytes", (int64_t)p->gap);
	json_bool(&body, "ended", ended);
	buf_adds(&body, "}");
	request_reply(page_free(p), 200, &body);
}

static void on_started(struct tail *t, uint32_t pid)
{
	(void)t;
	(void)pid;
}

static bool on_output(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	struct page *p = t->data;
	size_t room = PAGE_MAX - p->out[0].len - p->out[1].len;
	size_t n = len < room ? len : room;

	if (!p->only || p->only == (int)type)
		buf_add(&p->out[type == FRAME_STDERR], data, n);
	p->next = t->position + n;
	if (n < len)
		answer(p, false);
	return n < len;
}

static void on_gap(struct tail *t, uint64_t bytes)
{
	struct page *p = t->data;

	p->gap += bytes;
	p->next = t->position + bytes;
}

static void on_idle(struct tail *t)
{
	struct page *p = t->data;

	if (!p->follow || p->next > p->from)
		answer(p, false);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	(void)exit;
	if (why) /* it was never begun */
		return request_fail(page_free(t->data), why);
	answer(t->data, true);
}

static const struct tail_events sink = { on_started, on_output, on_gap, on_idle, on_finished };

static void on_gone(struct request *rq)
{
	request_end(page_free(rq->data), 499);
}

void exec_replay_json(struct request *rq, const struct exec_replay *r)
{
	struct page *p = xcalloc(1, sizeof(*p));

	p->rq = rq;
	p->from = p->next = r->from;
	p->only = r->only;
	p->follow = r->follow;
	p->out[0] = buf_make(PAGE_MAX + 1);
	p->out[1] = buf_make(PAGE_MAX + 1);
	p->tail = tail_new(rq->reactor, &sink, p);
	rq->data = p;
	rq->on_gone = on_gone;
	tail_follow(p->tail, r->journal, r->from);
}

/* ---- the route ---- */

static int read_query(const struct request *rq, struct exec_replay *r, struct err *e)
{
	const char *again = rq->x ? http_header(rq->x, "Last-Event-ID") : NULL;
	char from[24], follow[8], stream[16];
	bool given, found;

	if (http_query(rq->query, "from", from, sizeof(from), &given, e) < 0 ||
	    http_query(rq->query, "follow", follow, sizeof(follow), &found, e) < 0 ||
	    http_query(rq->query, "stream", stream, sizeof(stream), &found, e) < 0)
		return -1;
	/* A client that comes back knows better than the address it came with. */
	if (again && str_u64(again, &r->from, e) < 0)
		return -1;
	if (!again && given && str_u64(from, &r->from, e) < 0)
		return -1;
	r->follow = strcmp(follow, "1") == 0;
	if (strcmp(stream, "stdout") == 0)
		r->only = FRAME_STDOUT;
	else if (strcmp(stream, "stderr") == 0)
		r->only = FRAME_STDERR;
	else if (stream[0])
		return err_set(e, ERR_INVALID, "stream must be stdout or stderr");
	return 0;
}

void execs_output(struct request *rq)
{
	struct exec_replay r = { 0 };
	struct journal_view v;
	struct err e;

	if (read_query(rq, &r, &e) < 0 || execs_find(rq, &r.journal, &e) < 0)
		return request_fail(rq, &e);
	journal_look(r.journal, &v);
	if (v.slot.state != JOURNAL_RUNNING && r.from > journal_view_end(&v)) {
		journal_unref(r.journal);
		err_set(&e, ERR_INVALID, "exec %s has said no more than %llu bytes", rq->sub,
			(unsigned long long)journal_view_end(&v));
		return request_fail(rq, &e);
	}
	if (rq->wants_events)
		exec_replay_events(rq, &r);
	else
		exec_replay_json(rq, &r);
	journal_unref(r.journal);
}

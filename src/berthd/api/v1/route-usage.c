#include "berthd/api/v1/route-usage.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/unreadable.h"
#include "berthd/control/pool-level.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/control/usage-sampler.h"
#include "berthd/runtime/berthd.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"
#include "store/usage.h"

#define LIST_DEFAULT 100

/* Without its end: an answer about one has more to say. */
static void usage_begin(struct buf *out, const struct usage *u)
{
	char when[TIME_TEXT_SIZE];

	json_open(out, '{');
	json_str(out, "sandbox", u->sandbox);
	json_str(out, "owner", u->owner);
	json_str(out, "host", u->host);
	json_str(out, "profile", u->profile);
	json_bool(out, "gone", u->gone);
	time_text(u->since_ms, when);
	json_str(out, "since_at", when);
	time_text(u->seen_ms, when);
	json_str(out, "seen_at", when);
	json_int(out, "cpu_ms", (int64_t)(u->cpu_us / 1000));
	json_int(out, "memory_average_bytes", (int64_t)u->memory_average_bytes);
	json_int(out, "memory_peak_bytes", (int64_t)u->memory_peak_bytes);
	json_int(out, "disk_peak_bytes", (int64_t)u->disk_peak_bytes);
	json_int(out, "pids_peak", (int64_t)u->pids_peak);
	json_int(out, "oom_kills", (int64_t)u->oom_kills);
	json_int(out, "connections", (int64_t)u->connections);
	json_int(out, "requests", (int64_t)u->requests);
	json_int(out, "bytes_out", (int64_t)u->bytes_out);
}

/* The page, and one more row than asked for tells whether there is a next one. */
struct listing {
	struct buf *out;
	uint64_t limit, count;
	char last[SANDBOX_ID_SIZE], next[SANDBOX_ID_SIZE];
};

static void list_row(const struct usage *u, void *arg)
{
	struct listing *l = arg;

	if (l->count++ < l->limit) {
		usage_begin(l->out, u);
		buf_adds(l->out, "}");
		memcpy(l->last, u->sandbox, sizeof(l->last));
	} else {
		memcpy(l->next, l->last, sizeof(l->next));
	}
}

static void totals_json(struct buf *out, const struct usage_totals *t)
{
	json_key(out, "totals");
	json_open(out, '{');
	json_int(out, "sandboxes", (int64_t)t->sandboxes);
	json_int(out, "cpu_ms", (int64_t)(t->cpu_us / 1000));
	json_int(out, "connections", (int64_t)t->connections);
	json_int(out, "requests", (int64_t)t->requests);
	json_int(out, "bytes_out", (int64_t)t->bytes_out);
	buf_adds(out, "}");
}

int usages_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = { .out = reply, .limit = LIST_DEFAULT };
	char after[SANDBOX_ID_SIZE] = "", limit[16];
	struct usage_page page = { .owner = request_owner(rq), .after = after };
	struct usage_totals totals;
	bool found;
	int unreadable;

	if (http_query(rq->query, "after", after, sizeof(after), &found, e) < 0)
		return err_wrap(e, "after");
	if (http_query(rq->query, "limit", limit, sizeof(limit), &found, e) < 0 ||
	    (found && str_u64(limit, &l.limit, e) < 0))
		return err_wrap(e, "limit");
	if (l.limit < 1 || l.limit >= STORE_LIST_MAX)
		return err_set(e, ERR_INVALID, "limit must be from 1 to %d", STORE_LIST_MAX - 1);
	page.limit = (uint32_t)l.limit + 1;
	json_open(reply, '{');
	json_key(reply, "usage");
	json_open(reply, '[');
	if (usage_sampler_flush(rq->reactor->berthd->sampler, s, e) < 0 ||
	    store_usage_totals(s, page.owner, &totals, e) < 0)
		return -1;
	unreadable = store_usage_list(s, &page, list_row, &l, e);
	if (unreadable < 0)
		return -1;
	buf_adds(reply, "]");
	json_str(reply, "next", l.next);
	unreadable_json(reply, "usage", unreadable, e);
	totals_json(reply, &totals);
	buf_adds(reply, "}");
	return 0;
}

/* ---- one ---- */

/* From the first question to the answer. */
struct asking {
	struct job job;
	struct request *rq;
	struct usage usage;
	struct node_usage now; /* since_ms 0: its host did not say */
	uint64_t synced_ms;    /* 0: nothing was written out for this */
};

static int read_usage(struct job *job, struct store *s, struct err *e)
{
	struct asking *a = container_of(job, struct asking, job);

	if (usage_sampler_flush(a->rq->reactor->berthd->sampler, s, e) < 0)
		return -1;
	return store_usage_get(s, request_owner(a->rq), a->rq->param, &a->usage, e);
}

static void answer_json(struct buf *out, const struct asking *a)
{
	char when[TIME_TEXT_SIZE];

	usage_begin(out, &a->usage);
	if (a->now.since_ms != 0)
		json_int(out, "disk_bytes", (int64_t)a->now.disk_bytes);
	if (a->now.since_ms != 0 && a->synced_ms != 0) {
		time_text(a->synced_ms, when);
		json_str(out, "disk_at", when);
	}
	buf_adds(out, "}");
}

static void on_read(struct job *job)
{
	struct asking *a = container_of(job, struct asking, job);
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = a->rq;
	struct err e = job->e;

	if (!job->failed)
		answer_json(&body, a);
	free(a);
	if (buf_str(&body)[0])
		request_reply(rq, 200, &body);
	else
		request_fail(rq, &e);
}

static void look_up(struct asking *a)
{
	job_submit(a->rq->reactor, request_owner(a->rq), &a->job, read_usage, on_read);
}

static void on_usage(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct asking *a = data;

	(void)fd;
	if (!why) {
		a->now = record->usage;
		usage_sampler_put(a->rq->reactor->berthd->sampler, a->rq->param, &a->now);
	}
	look_up(a); /* if the host cannot say, what was seen last is all there is */
}

static const struct node_call_events usage_events = { .on_done = on_usage };

static void ask_host(struct asking *a, const struct cached_sandbox *place)
{
	struct node_target t = { .generation = place->generation };

	memcpy(t.request, a->rq->id, sizeof(a->rq->id));
	memcpy(t.sandbox, place->id, sizeof(t.sandbox));
	node_call(&a->rq->reactor->node, NODE_USAGE, &t, -1, &usage_events, a);
}

static void on_synced(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct asking *a = data;
	struct request *rq = a->rq;
	struct cached_sandbox place;

	(void)fd;
	if (why) {
		free(a);
		return request_fail(rq, why);
	}
	a->synced_ms = record->synced.at_ms;
	pool_level_synced(rq->reactor->berthd, a->synced_ms);
	if (sandbox_cache_get(rq->reactor->berthd->sandboxes, rq->param, &place))
		ask_host(a, &place);
	else
		look_up(a); /* it went away meanwhile */
}

static const struct node_call_events sync_events = { .on_done = on_synced };

/* As it is now, if it is here; whose it is, the row says in the end. */
void usages_get(struct request *rq)
{
	const char *owner = request_owner(rq);
	struct node_cursor c = { 0 };
	struct cached_sandbox place;
	struct asking *a;
	char fresh[4];
	bool found;
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	if (http_query(rq->query, "fresh", fresh, sizeof(fresh), &found, &e) < 0)
		return request_fail(rq, &e);
	if (found && strcmp(fresh, "1") != 0) {
		err_set(&e, ERR_INVALID, "fresh can only be 1");
		return request_fail(rq, &e);
	}
	a = xcalloc(1, sizeof(*a));
	a->rq = rq;
	if (!sandbox_cache_get(rq->reactor->berthd->sandboxes, rq->param, &place) ||
	    (owner && strcmp(owner, place.owner) != 0))
		return look_up(a); /* which tells a stranger what it tells of none */
	if (!found)
		return ask_host(a, &place);
	memcpy(c.request, rq->id, sizeof(rq->id));
	node_call(&rq->reactor->node, NODE_SYNC, &c, -1, &sync_events, a);
}

#include "berthd/api/v1/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/host-lease.h"
#include "berthd/control/capacity.h"
#include "berthd/control/health.h"
#include "berthd/front/key-cache.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/time.h"
#include "store/key.h"

struct health_call {
	struct job job;
	struct request *rq;
	bool ask;            /* whether this key is one is not remembered */
	bool known, unknown; /* neither: it could not be looked up */
	struct key key;
};

static int ping(struct job *job, struct store *s, struct err *e)
{
	struct health_call *h = container_of(job, struct health_call, job);
	struct err why = { 0 };

	if (store_ping(s, e) < 0)
		return -1;
	if (h->ask && store_key_find_by_hash(s, h->rq->key_hash, &h->key, &why) == 0)
		h->known = true;
	h->unknown = why.code == ERR_UNAUTHENTICATED; /* not: the database failed just then */
	return 0;
}

static void engines_json(struct buf *out, const char *words)
{
	json_key(out, "engines");
	json_open(out, '[');
	for (const char *at = words; *at; at += strspn(at, " ")) {
		char word[SANDBOX_RUNTIME_SIZE];
		size_t len = strcspn(at, " ");

		snprintf(word, sizeof(word), "%.*s", (int)len, at);
		buf_adds(out, at == words ? "" : ",");
		json_add_string(out, word);
		at += len;
	}
	buf_adds(out, "]");
}

/* What is wrong, the worst first; empty: nothing. */
static const char *wrong(const struct request *rq, const struct job *job,
			 const struct health_figures *now, const struct host_capacity *has)
{
	struct berthd *b = rq->reactor->berthd;

	if (job->failed && !store_is_unwritable(&job->e))
		return "the database cannot be reached, or is busy";
	if (job->failed)
		return job->e.msg;
	if (now->unwritable)
		return now->why.inner ? "the database takes no writes" : now->why.msg;
	if (!rq->reactor->node.up)
		return "berth-node cannot be reached";
	if (!lease_agent_runs(b->lease_agent))
		return "this host has no lease: its sandboxes may not run";
	if (!has->runtimes[0] && has->cpus) /* one engine is enough; none is not */
		return "no engine is installed";
	if (strcmp(now->state_disk, "full") == 0)
		return "the disk of state_dir is full: no output of commands can be kept";
	return "";
}

static const char *database_word(const struct job *job, const struct health_figures *now)
{
	if (job->failed && !store_is_unwritable(&job->e))
		return "unreachable";
	return job->failed || now->unwritable ? "unwritable" : "ok";
}

static void figures_json(struct buf *out, const struct health_figures *now,
			 const struct host_capacity *has)
{
	if (has->cpus)
		engines_json(out, has->runtimes);
	json_int(out, "state_disk_free", (int64_t)now->disk_free);
	json_int(out, "loop_lag_ms", (int64_t)now->loop_lag_ms);
	json_int(out, "clock_skew_ms", now->clock_skew_ms);
	json_int(out, "overdue", (int64_t)now->overdue);
}

static void on_pinged(struct job *job)
{
	cleanup(free_ptr) struct health_call *h = container_of(job, struct health_call, job);
	struct request *rq = h->rq;
	struct berthd *b = rq->reactor->berthd;
	cleanup(buf_done) struct buf body = buf_make(1024);
	struct health_figures now;
	struct host_capacity has;
	const char *why, *database;

	if (h->ask)
		key_cache_found(b->keys, &rq->key_lookup, rq->key_hash, time_mono_ms(),
				h->known ? &h->key : NULL, h->unknown);
	capacity_figures(b, &has);
	health_figures(b, &now);
	why = wrong(rq, job, &now, &has);
	database = database_word(job, &now);
	json_open(&body, '{');
	json_str(&body, "status",
		 !why[0]                       ? "ok"
		 : strcmp(database, "ok") == 0 ? "degraded"
					       : "critical");
	json_str(&body, "version", BERTH_VERSION);
	json_str(&body, "database", database);
	json_str(&body, "node", rq->reactor->node.up ? "ok" : "unreachable");
	json_str(&body, "lease", lease_agent_word(b->lease_agent));
	json_str(&body, "state_disk", now.state_disk);
	json_str(&body, "clock", now.clock);
	if (why[0])
		json_str(&body, "reason", why);
	if (h->known)
		figures_json(&body, &now, &has);
	buf_adds(&body, "}");
	request_reply(rq, why[0] ? 503 : 200, &body);
}

/* Strangers hear whether it works; what the host has is told to keys. */
static void look_up_key(struct health_call *h)
{
	struct request *rq = h->rq;
	enum key_cache_answer got;

	if (!rq->key_hash[0])
		return;
	got = key_cache_get(rq->reactor->berthd->keys, rq->key_hash, time_mono_ms(), &h->key,
			    &rq->key_lookup);
	h->known = got == KEY_CACHE_KNOWN;
	h->ask = got == KEY_CACHE_ASK;
}

void host_health(struct request *rq)
{
	struct health_call *h = xcalloc(1, sizeof(*h));

	h->rq = rq;
	h->job = (struct job){ .reactor = rq->reactor,
			       .owner = OWNER_HEALTH,
			       .run = ping,
			       .done = on_pinged };
	look_up_key(h);
	if (lease_agent_cut_off(rq->reactor->berthd->lease_agent, &h->job.e) < 0) {
		h->job.failed = true; /* it does not answer; this must */
		return on_pinged(&h->job);
	}
	worker_submit(&rq->reactor->berthd->workers, &h->job);
}

static const char *pool_word(const struct placement_host *h)
{
	if (!h->disk_known)
		return "unknown";
	return h->disk_free_mb < placement_disk_keep_mb(h) ? "low" : "ok";
}

static void on_capacity(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct request *rq = data;
	cleanup(buf_done) struct buf body = buf_make(4096);
	const struct node_capacity *c = &record->capacity;
	struct placement_host room;

	(void)fd;
	if (why)
		return request_fail(rq, why);
	json_open(&body, '{');
	json_str(&body, "host", rq->reactor->berthd->settings.host);
	json_str(&body, "version", BERTH_VERSION);
	json_int(&body, "cpus", c->cpus);
	json_int(&body, "memory_total", (int64_t)c->memory_total);
	json_int(&body, "memory_available", (int64_t)c->memory_available);
	json_int(&body, "disk_total", (int64_t)c->disk_total);
	json_int(&body, "disk_available", (int64_t)c->disk_available);
	capacity_get(rq->reactor->berthd, &room);
	json_int(&body, "disk_keep", (int64_t)placement_disk_keep_mb(&room) << 20);
	json_str(&body, "pool", pool_word(&room));
	json_int(&body, "sandboxes", c->sandboxes);
	json_int(&body, "sandboxes_cpu_ms", (int64_t)(c->cpu_us / 1000));
	json_str(&body, "cgroups", c->cgroups);
	json_str(&body, "runtimes", c->runtimes);
	buf_adds(&body, "}");
	request_reply(rq, 200, &body);
}

static const struct node_call_events capacity_events = { .on_done = on_capacity };

void host_facts(struct request *rq)
{
	struct node_cursor ask = { 0 };

	memcpy(ask.request, rq->id, sizeof(rq->id));
	node_call(&rq->reactor->node, NODE_CAPACITY, &ask, -1, &capacity_events, rq);
}

#include "berthd/api/v1/host.h"

#include <string.h>

#include "berthd/cluster/host-lease.h"
#include "berthd/control/capacity.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"

static int ping(struct job *job, struct store *s, struct err *e)
{
	(void)job;
	return store_ping(s, e);
}

static void on_pinged(struct job *job)
{
	struct request *rq = container_of(job, struct request, job);
	cleanup(buf_done) struct buf body = buf_make(1024);
	const struct lease_agent *lease_agent = rq->reactor->berthd->lease_agent;
	bool ok = !job->failed && rq->reactor->node.up && lease_agent_runs(lease_agent);

	json_open(&body, '{');
	json_str(&body, "status", ok ? "ok" : "degraded");
	json_str(&body, "version", BERTH_VERSION);
	json_str(&body, "database", job->failed ? "unreachable" : "ok");
	json_str(&body, "node", rq->reactor->node.up ? "ok" : "unreachable");
	json_str(&body, "lease", lease_agent_word(lease_agent));
	buf_adds(&body, "}");
	request_reply(rq, ok ? 200 : 503, &body);
}

void host_health(struct request *rq)
{
	rq->job = (struct job){ .reactor = rq->reactor,
				.owner = OWNER_HEALTH,
				.run = ping,
				.done = on_pinged };
	if (lease_agent_cut_off(rq->reactor->berthd->lease_agent, &rq->job.e) < 0) {
		rq->job.failed = true; /* it does not answer; this must */
		return on_pinged(&rq->job);
	}
	worker_submit(&rq->reactor->berthd->workers, &rq->job);
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
	capacity_room(rq->reactor->berthd, &room);
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

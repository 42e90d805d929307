#include "berthd/control/limits.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/netpolicy/policy-sync.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/str.h"

void limits_json(struct buf *out, const struct limits *l)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		json_int(out, limit_name((enum limit)i), l->of[i]);
}

struct node_limits limits_of_node(const struct limits *l)
{
	return (struct node_limits){
		.memory_bytes = (uint64_t)l->of[LIMIT_MEMORY_MB] << 20,
		.disk_bytes = (uint64_t)l->of[LIMIT_DISK_MB] << 20,
		.cpu_milli = (uint32_t)l->of[LIMIT_CPU_MILLI],
		.pids = (uint32_t)l->of[LIMIT_PIDS],
		.open_files = (uint32_t)l->of[LIMIT_OPEN_FILES],
	};
}

struct enforcing {
	struct job job;
	struct reactor *reactor;
	struct sandbox sb;
	limits_fn *done;
	void *data;
};

static void end(struct enforcing *n, const struct err *why)
{
	n->done(n->data, &n->sb, why);
	free(n);
}

static int write_done(struct job *job, struct store *s, struct err *e)
{
	struct enforcing *n = container_of(job, struct enforcing, job);

	return store_sandbox_limits_done(s, n->sb.id, n->sb.version, &n->sb, e);
}

static void on_egress_told(void *data)
{
	end(data, NULL);
}

/* Whatever is wrong now: berth-node did it, and the next look writes it. */
static void on_done_written(struct job *job)
{
	struct enforcing *n = container_of(job, struct enforcing, job);

	if (job->failed) {
		job->e.code = ERR_BUSY;
		return end(n, &job->e);
	}
	egress_tell(n->reactor->berthd->egress, n->sb.id, n->reactor, on_egress_told, n);
}

static void on_limited(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct enforcing *n = data;

	(void)record, (void)fd;
	crash_point("life.limited");
	if (why)
		return end(n, why);
	job_submit(n->reactor, NULL, &n->job, write_done, on_done_written);
}

static const struct node_call_events limited_events = { .on_done = on_limited };

void limits_enforce(struct reactor *r, const char *request, const struct sandbox *sb,
		    limits_fn *done, void *data)
{
	struct enforcing *n = xcalloc(1, sizeof(*n));
	struct node_limit ask = { .generation = sb->generation };

	n->reactor = r;
	n->sb = *sb;
	n->done = done;
	n->data = data;
	(void)!str_copy(ask.request, sizeof(ask.request), request);
	memcpy(ask.sandbox, sb->id, sizeof(ask.sandbox));
	ask.limits = limits_of_node(&sb->limits);
	node_call(&r->node, NODE_LIMIT, &ask, -1, &limited_events, n);
}

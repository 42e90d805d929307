#include "berthd/exec/usage.h"

#include <inttypes.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/control/usage-sampler.h"
#include "berthd/exec/exec.h"
#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/time.h"

#define LOOK_LEAST_MS 20
#define LOOK_MOST_MS  5000      /* a limit may be changed while it runs */
#define DISK_ROOM     (1 << 20) /* so little left is none */

static void disk_at_json(struct buf *out, uint64_t at_ms)
{
	char when[TIME_TEXT_SIZE];

	if (at_ms == 0) {
		json_key(out, "disk_at");
		buf_adds(out, "null");
	} else {
		time_text(at_ms, when);
		json_str(out, "disk_at", when);
	}
}

void exec_usage_json(struct buf *out, const struct exec_usage *u)
{
	json_key(out, "usage");
	if (u->known) {
		json_open(out, '{');
		json_int(out, "cpu_ms", (int64_t)(u->cpu_us / 1000));
		json_int(out, "memory_bytes", (int64_t)u->memory_bytes);
		json_int(out, "memory_peak_bytes", (int64_t)u->memory_peak_bytes);
		json_int(out, "disk_bytes", (int64_t)u->disk_bytes);
		disk_at_json(out, u->disk_at_ms);
		json_int(out, "pids_peak", (int64_t)u->pids_peak);
		json_key(out, "requests");
		if (u->counted)
			buf_addf(out, "%" PRIu64, u->requests);
		else
			buf_adds(out, "null"); /* not known is never 0 */
		json_bool(out, "alone", u->alone);
		buf_adds(out, "}");
	} else {
		buf_adds(out, "null");
	}
	json_key(out, "limit");
	if (u->hit) {
		json_open(out, '{');
		json_str(out, "name", limit_name(u->limit));
		json_int(out, "value", (int64_t)u->value);
		json_int(out, "peak", (int64_t)u->peak);
		buf_adds(out, "}");
	} else {
		buf_adds(out, "null");
	}
}

static unsigned divisor(const struct exec *x)
{
	return (unsigned)x->reactor->berthd->settings.timer_divisor;
}

/* As they are now; as they were last, if `places` does not have the sandbox any more. */
static const struct limits *limits_now(struct exec *x)
{
	sandbox_cache_limits(x->reactor->berthd->sandboxes, x->sandbox, &x->limits);
	return &x->limits;
}

void exec_usage_begin(struct exec *x, const struct node_usage *before)
{
	struct exec_request *ask = &x->head.ask;
	uint64_t wall = limits_ms(limits_now(x), LIMIT_WALL_MS, divisor(x));

	x->head.before = (struct exec_before){
		.cpu_us = before->cpu_us,
		.pids_refused = before->pids_refused,
		.oom_kills = before->oom_kills,
	};
	x->oom_told = sandbox_cache_oom_told(x->reactor->berthd->sandboxes, x->sandbox);
	x->head.walled = wall && (ask->timeout_ms == 0 || ask->timeout_ms > wall);
	if (x->head.walled)
		ask->timeout_ms = wall;
}

uint64_t exec_usage_oom_kills(const struct exec *x, const struct node_usage *now)
{
	uint64_t before = x->journal->head.before.oom_kills;

	return now->oom_kills > before ? now->oom_kills - before : 0;
}

/* ---- CPU time ---- */

static uint64_t used_us(const struct exec *x, const struct node_usage *now)
{
	uint64_t before = x->journal->head.before.cpu_us;

	return now->cpu_us > before ? now->cpu_us - before : 0;
}

/* So long it takes at least until so much is used, as fast as it may go. */
static uint64_t earliest_ms(uint64_t left_us, int64_t cpu_milli)
{
	uint64_t ms = left_us / (uint64_t)(cpu_milli > 0 ? cpu_milli : 1) + 1;

	if (ms < LOOK_LEAST_MS)
		return LOOK_LEAST_MS;
	return ms < LOOK_MOST_MS ? ms : LOOK_MOST_MS;
}

static void on_look(uv_timer_t *timer);

static void look_later(struct exec *x, uint64_t used)
{
	const struct limits *l = limits_now(x);
	uint64_t most = limits_ms(l, LIMIT_CPU_MS, divisor(x)) * 1000;

	if (most && used >= most)
		exec_signal(x, 9);
	else
		uv_timer_start(&x->watch, on_look,
			       most ? earliest_ms(most - used, l->of[LIMIT_CPU_MILLI])
				    : LOOK_MOST_MS,
			       0);
}

static void on_seen(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct exec *x = data;

	(void)fd;
	if (exec_came_back(x) || x->exit.kind != EXEC_NONE)
		return;
	look_later(x, why ? 0 : used_us(x, &record->usage));
}

static const struct node_call_events seen_events = { .on_done = on_seen };

static void on_look(uv_timer_t *timer)
{
	struct exec *x = timer->data;

	if (limits_now(x)->of[LIMIT_CPU_MS] == 0)
		return look_later(x, 0);
	exec_ask_usage(x, &seen_events);
}

void exec_usage_watch(struct exec *x)
{
	look_later(x, 0);
}

/* ---- the end ---- */

struct hit {
	bool yes;
	enum limit limit;
	uint64_t peak;
};

/* Which one it was; the first that is true says most. */
static void decide(struct exec_usage *u, const struct exec *x, const struct node_usage *after)
{
	const struct journal_head *h = &x->journal->head;
	const struct limits *l = &x->limits;
	uint64_t cpu_ms = limits_ms(l, LIMIT_CPU_MS, divisor(x));
	uint64_t disk = (uint64_t)l->of[LIMIT_DISK_MB] << 20;
	/* clang-format off */
	const struct hit hits[] = {
		{ x->exit.kind == EXEC_OOM || after->oom_kills > h->before.oom_kills,
		  LIMIT_MEMORY_MB, u->memory_peak_bytes >> 20 },
		{ cpu_ms && u->cpu_us / 1000 >= cpu_ms && x->exit.kind == EXEC_KILLED,
		  LIMIT_CPU_MS, u->cpu_us / 1000 },
		{ h->walled && x->exit.kind == EXEC_TIMED_OUT,
		  LIMIT_WALL_MS, x->exit.wall_us / 1000 },
		{ after->pids_refused > h->before.pids_refused, LIMIT_PIDS, u->pids_peak },
		{ disk && u->disk_bytes + DISK_ROOM >= disk, LIMIT_DISK_MB, u->disk_bytes >> 20 },
	};
	/* clang-format on */

	for (size_t i = 0; i < array_len(hits) && !u->hit; i++) {
		u->hit = hits[i].yes;
		u->limit = hits[i].limit;
		u->value = (uint64_t)l->of[hits[i].limit];
		u->peak = hits[i].peak;
	}
}

/* It is told what another one did in between, unless none began: asked after all the counts. */
static bool is_alone(const struct exec *x)
{
	return x->alone &&
	       sandbox_cache_begun(x->reactor->berthd->sandboxes, x->sandbox, NULL) == x->begun;
}

void exec_usage_requests(struct exec *x)
{
	const struct egress_count *before = &x->requests_before, *after = &x->requests_after;

	x->use.counted = before->since_ns && before->since_ns == after->since_ns &&
			 after->requests >= before->requests;
	if (x->use.counted) {
		x->use.requests = after->requests - before->requests;
		x->use.alone = x->use.alone && is_alone(x);
	}
}

void exec_usage_end(struct exec *x, const struct node_usage *after)
{
	struct exec_usage u = {
		.known = true,
		.alone = is_alone(x),
		.cpu_us = used_us(x, after),
		.memory_bytes = after->memory_bytes,
		.memory_peak_bytes = after->memory_peak_bytes,
		.disk_bytes = after->disk_bytes,
		.disk_at_ms = x->disk_at_ms,
		.pids_peak = after->pids_peak,
	};

	usage_sampler_put(x->reactor->berthd->sampler, x->sandbox, after);
	(void)limits_now(x);
	decide(&u, x, after);
	x->use = u;
}

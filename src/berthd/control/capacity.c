#include "berthd/control/capacity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/host-capacity.h"
#include "berthd/runtime/berthd.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"

#define KNOWN_MS     10000
#define LOOK_MS      100
#define CLEAR_MS     5000  /* for leftovers to be looked for, and a disk to be freed */
#define FREEING_MS   30000 /* btrfs writes out by itself that often */
#define MB           (1024 * 1024)
#define KEEP_SHARE   10 /* of what is small: one tenth is kept */
#define UNLIMITED_MB (UINT64_MAX / 1024)

struct measuring {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	capacity_fn *done;
	void *data;
	uv_timer_t timer; /* of capacity_clear() */
	uint64_t until_ms;
	struct reconcile_counts before, *counts; /* when it began, and since */
};

/* How often it may be promised; 0: promises of it are not counted. */
static uint64_t promisable(uint64_t total, uint64_t times)
{
	if (times == 0 || total > UNLIMITED_MB / times)
		return UNLIMITED_MB;
	return total * times;
}

/* What the setting says, or a tenth, or `most` if that is less. */
static uint64_t kept(uint64_t setting, uint64_t total, uint64_t most)
{
	if (setting)
		return setting;
	return total / KEEP_SHARE < most ? total / KEEP_SHARE : most;
}

static struct placement_host capacity_of(const struct berthd *b, const struct node_capacity *c)
{
	const struct berthd_settings *set = &b->settings;
	uint64_t disk_mb = c->disk_total / MB, memory_mb = c->memory_total / MB;
	struct placement_host h = {
		.lease = { .state = HOST_LIVE },
		.sandboxes_max = (unsigned)set->sandboxes_max,
		.disk_known = c->disk_total > 0,
		.disk_free_mb = c->disk_available / MB,
		.disk_keep_mb = kept(set->disk_keep_mb, disk_mb, LOW_DISK_MB),
		.memory_free_mb = c->memory_available / MB,
		.memory_keep_mb = kept(set->memory_keep_mb, memory_mb, LOW_MEMORY_MB),
	};

	h.total.of[RESOURCE_MEMORY_MB] = promisable(memory_mb, set->overcommit_memory);
	h.total.of[RESOURCE_DISK_MB] = promisable(disk_mb, set->overcommit_disk);
	h.total.of[RESOURCE_CPU_MILLI] = promisable(c->cpus * 1000UL, set->overcommit_cpu);
	h.total.of[RESOURCE_PIDS] =
		c->pids ? promisable(c->pids, set->overcommit_pids) : UNLIMITED_MB;
	h.most.of[LIMIT_CPU_MILLI] = (int64_t)c->cpus * 1000;
	h.most.of[LIMIT_MEMORY_MB] = (int64_t)memory_mb;
	h.most.of[LIMIT_DISK_MB] = (int64_t)disk_mb;
	h.most.of[LIMIT_PIDS] = c->pids;
	h.most.of[LIMIT_OPEN_FILES] = c->open_files;
	return h;
}

void capacity_get(struct berthd *b, struct placement_host *ret)
{
	pthread_mutex_lock(&b->capacity->lock);
	*ret = b->capacity->host;
	pthread_mutex_unlock(&b->capacity->lock);
}

bool capacity_is_freeing(struct berthd *b)
{
	uint64_t freed = b->disk_freed_ms;
	struct placement_host h;

	if (!freed || time_mono_ms() - freed > FREEING_MS)
		return false;
	capacity_get(b, &h);
	return h.disk_known && h.disk_free_mb < placement_disk_keep_mb(&h);
}

void capacity_figures(struct berthd *b, struct host_capacity *ret)
{
	pthread_mutex_lock(&b->capacity->lock);
	*ret = b->capacity->capacity;
	pthread_mutex_unlock(&b->capacity->lock);
}

/* One that lives and has room for anything, but whose disk is not known. */
static struct placement_host capacity_unknown(void)
{
	struct placement_host h = { .lease = { .state = HOST_LIVE }, .sandboxes_max = UINT32_MAX };

	for (int i = 0; i < RESOURCE_COUNT; i++)
		h.total.of[i] = UNLIMITED_MB;
	return h;
}

static void on_tick_measured(void *data, const struct placement_host *room, const struct err *why)
{
	(void)data, (void)room, (void)why; /* it is remembered: that was all */
}

static void on_capacity(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct measuring *m = data;
	struct berthd *b = m->reactor->berthd;
	struct placement_host room;

	(void)fd;
	room = why ? capacity_unknown() : capacity_of(b, &record->capacity);
	pthread_mutex_lock(&b->capacity->lock);
	b->capacity->host = room;
	if (!why)
		b->capacity->capacity = host_capacity_of(&record->capacity);
	b->capacity->measured_ms = time_mono_ms();
	b->capacity->asking = b->capacity->asking && m->done != on_tick_measured;
	pthread_mutex_unlock(&b->capacity->lock);
	m->done(m->data, &room, NULL);
	free(m);
}

static const struct node_call_events capacity_events = { .on_done = on_capacity };

static void measure_now(struct measuring *m)
{
	struct node_cursor ask = { 0 };

	memcpy(ask.request, m->request, sizeof(ask.request));
	node_call(&m->reactor->node, NODE_CAPACITY, &ask, -1, &capacity_events, m);
}

static struct measuring *measuring_new(struct reactor *r, const char *request, capacity_fn *done,
				       void *data)
{
	struct measuring *m = xcalloc(1, sizeof(*m));

	m->reactor = r;
	m->done = done;
	m->data = data;
	(void)!str_copy(m->request, sizeof(m->request), request);
	return m;
}

/* One question at a time: a berth-node that does not answer is not asked ever more. */
void capacity_tick(struct reactor *r)
{
	struct berthd *b = r->berthd;
	bool busy;

	pthread_mutex_lock(&b->capacity->lock);
	busy = b->capacity->asking;
	b->capacity->asking = true;
	pthread_mutex_unlock(&b->capacity->lock);
	if (!busy)
		measure_now(measuring_new(r, "room", on_tick_measured, NULL));
}

void capacity_measure(struct reactor *r, const char *request, capacity_fn *done, void *data)
{
	struct berthd *b = r->berthd;
	struct placement_host room;
	uint64_t measured;

	pthread_mutex_lock(&b->capacity->lock);
	room = b->capacity->host;
	measured = b->capacity->measured_ms;
	pthread_mutex_unlock(&b->capacity->lock);
	if (!measured)
		return measure_now(measuring_new(r, request, done, data));
	if (time_mono_ms() - measured > KNOWN_MS)
		room = capacity_unknown();
	done(data, &room, NULL);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct measuring *m = handle->data;
	struct reconcile_counts now = reconcile_counts(m->reactor->berthd->reconcile);
	char cleaned[24], skipped[24];

	m->counts->cleaned = now.cleaned - m->before.cleaned;
	m->counts->skipped = now.skipped - m->before.skipped;
	snprintf(cleaned, sizeof(cleaned), "%" PRIu64, m->counts->cleaned);
	snprintf(skipped, sizeof(skipped), "%" PRIu64, m->counts->skipped);
	log_event(LOG_WARN, "leftovers were looked for", "cleaned", cleaned, "skipped", skipped,
		  "request_id", m->request, NULL);
	measure_now(m);
}

/*
 * By the clock: btrfs tells no process when it has freed what was deleted. That is seen when
 * control/tick.h measures, and for the rest of the wait two words of memory are read. CLEAR_MS
 * ends it.
 */
static void on_look(uv_timer_t *timer)
{
	struct measuring *m = timer->data;

	if (time_mono_ms() < m->until_ms && (reconcile_looks(m->reactor->berthd->reconcile) ||
					     capacity_is_freeing(m->reactor->berthd)))
		return;
	uv_close((uv_handle_t *)timer, on_timer_closed);
}

void capacity_clear(struct reactor *r, const char *request, struct reconcile_counts *counts,
		    capacity_fn *done, void *data)
{
	struct measuring *m = measuring_new(r, request, done, data);

	m->counts = counts;
	m->before = reconcile_counts(r->berthd->reconcile);
	log_event(LOG_WARN, "no capacity: leftovers are looked for", "request_id", request, NULL);
	reconcile_look(r->berthd->reconcile);
	m->until_ms = time_mono_ms() + CLEAR_MS;
	uv_timer_init(&r->loop, &m->timer);
	m->timer.data = m;
	uv_timer_start(&m->timer, on_look, LOOK_MS, LOOK_MS);
}

struct host_share capacity_share(const struct berthd *b)
{
	const struct berthd_settings *set = &b->settings;

	return (struct host_share){ .memory = set->overcommit_memory,
				    .disk = set->overcommit_disk,
				    .cpu = set->overcommit_cpu };
}

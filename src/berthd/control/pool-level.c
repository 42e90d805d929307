#include "berthd/control/pool-level.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "berthd/control/capacity.h"
#include "berthd/runtime/berthd.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"

#define SYNC_KNOWN_MS 60000
#define MARGIN_MB     256 /* so much more than is kept ends the alert: it does not flicker */

static const char kind[] = "pool_low";

static int write_alert(struct job *job, struct store *s, struct err *e)
{
	const struct pool_level *p = container_of(job, struct pool_level, job);

	if (p->raises)
		return store_alert_raise(s, &p->alert, e);
	return store_alert_end(s, "", kind, p->alert.subject, e);
}

static void on_written(struct job *job)
{
	struct pool_level *p = container_of(job, struct pool_level, job);

	p->writing = false;
	if (job->failed) /* and is tried again: one line in the log says which database is away */
		return;
	if (p->raises)
		alert_tell(job->reactor->berthd, &p->alert, "",
			   "remove images or sandboxes, or give the pool more disk");
	else if (p->written)
		log_event(LOG_INFO, "pool has free space again", "host", p->alert.host, NULL);
	p->written = true;
	p->low = p->raises;
}

static void begin_write(struct pool_level *p, struct reactor *r, const struct placement_host *h,
			bool low)
{
	const char *host = r->berthd->settings.host;

	p->writing = true;
	p->raises = low;
	p->alert = (struct alert){ 0 };
	(void)!str_copy(p->alert.kind, sizeof(p->alert.kind), kind);
	(void)!str_copy(p->alert.host, sizeof(p->alert.host), host);
	snprintf(p->alert.subject, sizeof(p->alert.subject), "%.63s", host); /* one for each host */
	snprintf(p->alert.message, sizeof(p->alert.message),
		 "the pool has %" PRIu64 " MB free, below the %" PRIu64
		 " it keeps: no new sandboxes are made here",
		 h->disk_free_mb, placement_disk_keep_mb(h));
	job_submit_background(r, &p->job, write_alert, on_written);
}

void pool_level_synced(struct berthd *b, uint64_t at_ms)
{
	uint64_t last = b->disk_synced_ms;

	while (last < at_ms && !atomic_compare_exchange_weak(&b->disk_synced_ms, &last, at_ms))
		;
}

uint64_t pool_level_synced_at(const struct berthd *b)
{
	uint64_t at = b->disk_synced_ms;

	return time_wall_ms() - at < SYNC_KNOWN_MS ? at : 0;
}

static void on_synced(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct reactor *r = data;

	(void)fd; /* what came of it is measured */
	if (!why)
		pool_level_synced(r->berthd, record->synced.at_ms);
	r->berthd->pool_level->syncing = false;
}

static const struct node_call_events sync_events = { .on_done = on_synced };

void pool_level_tick(struct reactor *r)
{
	struct pool_level *p = r->berthd->pool_level;
	struct node_cursor ask = { .request = "pool" };
	struct placement_host h;
	uint64_t enough;
	bool low;

	capacity_get(r->berthd, &h);
	if (!h.disk_known)
		return;
	enough = placement_disk_keep_mb(&h);
	if (p->written && p->low)
		enough += enough / 8 < MARGIN_MB ? enough / 8 : MARGIN_MB;
	low = h.disk_free_mb < enough;
	if (!p->writing && (!p->written || low != p->low))
		begin_write(p, r, &h, low);
	if (!p->syncing && capacity_is_freeing(r->berthd)) {
		p->syncing = true;
		node_call(&r->node, NODE_SYNC, &ask, -1, &sync_events, r);
	}
}

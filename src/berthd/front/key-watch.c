#include "berthd/front/key-watch.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/log.h"
#include "lib/strv.h"
#include "lib/time.h"
#include "store/key.h"

/* A revocation is seen when its transaction ends, which can be after those begun later. */
#define OVERLAP_MS 60000

struct key_watch {
	struct reactor *reactor;
	uv_timer_t timer;
	struct job job;
	bool looking;
	uint64_t begun_ms;   /* by time_boot_ms(); no stream here is older */
	uint64_t newest_ms;  /* the latest revocation that was seen; 0: none */
	struct strv revoked; /* ids, of the look that is under way */
};

/* One loop's part: only its thread touches its connections. */
struct key_break {
	struct job job;
	struct strv revoked;
};

static void break_connections(struct job *job)
{
	struct key_break *b = container_of(job, struct key_break, job);

	for (size_t i = 0; i < b->revoked.len; i++)
		http_server_break(&job->reactor->server, b->revoked.items[i]);
	strv_done(&b->revoked);
	free(b);
}

static void tell_loops(struct key_watch *w)
{
	struct berthd *berthd = w->reactor->berthd;

	for (size_t i = 0; i < berthd->reactor_count; i++) {
		struct key_break *b = xcalloc(1, sizeof(*b));

		b->job = (struct job){ .reactor = &berthd->reactors[i], .done = break_connections };
		for (size_t k = 0; k < w->revoked.len; k++)
			strv_add(&b->revoked, w->revoked.items[k]);
		reactor_post(b->job.reactor, &b->job);
	}
}

static void on_revoked(const struct key *k, void *arg)
{
	struct key_watch *w = arg;

	strv_add(&w->revoked, k->id);
	if (k->revoked_ms > w->newest_ms)
		w->newest_ms = k->revoked_ms;
}

static int look(struct job *job, struct store *s, struct err *e)
{
	struct key_watch *w = container_of(job, struct key_watch, job);
	uint64_t since = w->newest_ms > OVERLAP_MS ? w->newest_ms - OVERLAP_MS : 0;

	return store_key_list_revoked(s, since, time_boot_ms() - w->begun_ms + OVERLAP_MS,
				      on_revoked, w, e);
}

static void on_looked(struct job *job)
{
	struct key_watch *w = container_of(job, struct key_watch, job);

	w->looking = false;
	if (w->revoked.len)
		tell_loops(w);
	strv_done(&w->revoked);
	w->revoked = (struct strv){ 0 };
	if (job->failed && job->e.code != ERR_BUSY)
		log_event(LOG_WARN, "revoked keys could not be read", "why", job->e.msg, NULL);
}

static void on_time(uv_timer_t *timer)
{
	struct key_watch *w = timer->data;

	if (w->looking)
		return;
	w->looking = true;
	job_submit_background(w->reactor, &w->job, look, on_looked);
}

struct key_watch *key_watch_begin(struct reactor *r)
{
	struct key_watch *w = xcalloc(1, sizeof(*w));

	w->reactor = r;
	w->begun_ms = time_boot_ms();
	uv_timer_init(&r->loop, &w->timer);
	w->timer.data = w;
	uv_timer_start(&w->timer, on_time, KEY_WATCH_MS, KEY_WATCH_MS);
	return w;
}

static void on_closed(uv_handle_t *handle)
{
	struct key_watch *w = handle->data;

	strv_done(&w->revoked);
	free(w);
}

void key_watch_end(struct key_watch *w)
{
	if (w)
		uv_close((uv_handle_t *)&w->timer, on_closed);
}

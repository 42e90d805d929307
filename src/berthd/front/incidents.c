#include "berthd/front/incidents.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "http/server.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/incident.h"

#define WRITE_MS 2000

struct incidents {
	struct reactor *reactor;
	uv_timer_t timer;
	struct job job;
	bool writing;
	pthread_mutex_t lock; /* of the window: every reactor adds to it */
	struct incident_window window;
};

/* What a stranger sends goes into our records: only what can be read there. */
static void plain(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

/* The sandbox that the path names, if that can be one. */
static void name_sandbox(const struct request *rq, struct incident *one)
{
	struct err ignored;

	if (rq->route && (rq->route->sandbox & ROUTE_SANDBOX) &&
	    sandbox_id_check(rq->param, &ignored) == 0)
		(void)!str_copy(one->sandbox, sizeof(one->sandbox), rq->param);
}

void incidents_note(const struct request *rq, const struct err *e)
{
	struct incidents *in = rq->reactor->berthd->incidents;
	const char *kind = incident_kind(e);
	struct incident one = { .last_ms = time_wall_ms() };
	bool is_new;

	if (!kind || !in || !rq->x)
		return;
	(void)!str_copy(one.kind, sizeof(one.kind), kind);
	http_exchange_peer(rq->x, one.source, sizeof(one.source));
	name_sandbox(rq, &one);
	snprintf(one.detail, sizeof(one.detail), "%s", e->msg);
	plain(one.detail);
	pthread_mutex_lock(&in->lock);
	is_new = incident_add(&in->window, &one);
	pthread_mutex_unlock(&in->lock);
	if (is_new)
		log_event(LOG_WARN, "security incident", "kind", one.kind, "source", one.source,
			  "sandbox", one.sandbox, "request_id", rq->id, "why", one.detail, NULL);
}

static bool take(struct incidents *in, size_t i, struct incident *ret)
{
	bool found;

	pthread_mutex_lock(&in->lock);
	found = incident_take(&in->window, i, ret);
	pthread_mutex_unlock(&in->lock);
	return found;
}

/* What could not be written is counted again, as what comes meanwhile. */
static void put_back(struct incidents *in, const struct incident *one)
{
	pthread_mutex_lock(&in->lock);
	incident_put_back(&in->window, one);
	pthread_mutex_unlock(&in->lock);
}

static int write_all(struct job *job, struct store *s, struct err *e)
{
	struct incidents *in = container_of(job, struct incidents, job);
	struct incident one;
	bool wrote = false;

	for (size_t i = 0; i < INCIDENT_ROWS; i++) {
		if (!take(in, i, &one))
			continue;
		if (store_incident_add(s, &one, e) < 0) {
			put_back(in, &one);
			return -1;
		}
		wrote = true;
	}
	return wrote ? store_incident_trim(s, e) : 0;
}

static void on_written(struct job *job)
{
	struct incidents *in = container_of(job, struct incidents, job);

	in->writing = false;
	if (job->failed && job->e.code != ERR_BUSY)
		log_event(LOG_WARN, "refusals could not be written down", "why", job->e.msg, NULL);
}

static bool is_empty(struct incidents *in)
{
	bool empty = true;

	pthread_mutex_lock(&in->lock);
	for (size_t i = 0; i < in->window.count && empty; i++)
		empty = in->window.rows[i].count == 0;
	pthread_mutex_unlock(&in->lock);
	return empty;
}

static void on_time(uv_timer_t *timer)
{
	struct incidents *in = timer->data;

	if (in->writing || is_empty(in))
		return;
	in->writing = true;
	job_submit_background(in->reactor, &in->job, write_all, on_written);
}

struct incidents *incidents_begin(struct reactor *r)
{
	struct incidents *in = xcalloc(1, sizeof(*in));

	in->reactor = r;
	pthread_mutex_init(&in->lock, NULL);
	uv_timer_init(&r->loop, &in->timer);
	in->timer.data = in;
	uv_timer_start(&in->timer, on_time, WRITE_MS, WRITE_MS);
	return in;
}

static void on_closed(uv_handle_t *handle)
{
	struct incidents *in = handle->data;

	pthread_mutex_destroy(&in->lock);
	free(in);
}

void incidents_end(struct incidents *in)
{
	if (in)
		uv_close((uv_handle_t *)&in->timer, on_closed);
}

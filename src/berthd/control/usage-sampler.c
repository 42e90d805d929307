#include "berthd/control/usage-sampler.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/str.h"

#define LEAST_MS 100

struct meter_entry {
	struct usage_look look;
	struct meter_entry *next;
};

struct usage_look usage_sampler_look(const char *sandbox, const struct node_usage *u)
{
	struct usage_look l = {
		.since_ms = u->since_ms,
		.cpu_us = u->cpu_us,
		.memory_peak_bytes = u->memory_peak_bytes,
		.memory_sum_mb = u->memory_bytes >> 20,
		.memory_looks = u->memory_bytes > 0,
		.disk_bytes = u->disk_bytes,
		.pids_peak = u->pids_peak,
		.oom_kills = u->oom_kills,
	};

	(void)!str_copy(l.sandbox, sizeof(l.sandbox), sandbox); /* it was one before */
	return l;
}

/* Of the same allocation the later look says more; of another one, this one is newer. */
static void add(struct usage_sampler *m, const struct usage_look *look)
{
	struct meter_entry **at = &m->buckets[str_hash(look->sandbox) % METER_BUCKETS];
	struct usage_look l = *look;

	while (*at && (strcmp((*at)->look.sandbox, l.sandbox) != 0 ||
		       (*at)->look.since_ms != l.since_ms))
		at = &(*at)->next;
	if (!*at)
		*at = xcalloc(1, sizeof(**at));
	l.memory_sum_mb += (*at)->look.memory_sum_mb;
	l.memory_looks += (*at)->look.memory_looks;
	(*at)->look = l;
}

void usage_sampler_put(struct usage_sampler *m, const char *sandbox, const struct node_usage *u)
{
	struct usage_look l = usage_sampler_look(sandbox, u);

	if (u->since_ms == 0)
		return;
	pthread_mutex_lock(&m->lock);
	add(m, &l);
	pthread_mutex_unlock(&m->lock);
}

static struct usage_look *take_all(struct usage_sampler *m, size_t *ret)
{
	struct usage_look *looks = NULL;
	size_t n = 0, room = 0;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < METER_BUCKETS; i++)
		while (m->buckets[i]) {
			struct meter_entry *entry = m->buckets[i];

			if (n == room) {
				room = room ? room * 2 : 64;
				looks = xrealloc(looks, room * sizeof(*looks));
			}
			looks[n++] = entry->look;
			m->buckets[i] = entry->next;
			free(entry);
		}
	pthread_mutex_unlock(&m->lock);
	*ret = n;
	return looks;
}

int usage_sampler_flush(struct usage_sampler *m, struct store *s, struct err *e)
{
	size_t n;
	cleanup(free_ptr) struct usage_look *looks = take_all(m, &n);

	if (store_usage_put(s, looks, n, e) == 0) {
		crash_point("life.usage-written");
		return 0;
	}
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < n; i++)
		add(m, &looks[i]); /* maybe older than one that came meanwhile: the next is not */
	pthread_mutex_unlock(&m->lock);
	return -1;
}

static int write_all_looks(struct job *job, struct store *s, struct err *e)
{
	return usage_sampler_flush(container_of(job, struct usage_sampler, job), s, e);
}

static void on_written(struct job *job)
{
	struct usage_sampler *m = container_of(job, struct usage_sampler, job);

	m->writing = false;
	if (job->failed)
		log_event(LOG_WARN, "usage is not written", "why", job->e.msg, NULL);
}

static void on_flush(uv_timer_t *timer)
{
	struct usage_sampler *m = timer->data;

	if (m->writing)
		return;
	m->writing = true;
	job_submit(m->reactor, NULL, &m->job, write_all_looks, on_written);
}

/* ---- those that run, one after the other ---- */

static void sample_next(struct usage_sampler *m);

static void on_sampled(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct usage_sampler *m = data;

	(void)fd;
	if (!why)
		usage_sampler_put(m, m->asked.id, &record->usage);
	sample_next(m);
}

static const struct node_call_events sampled_events = { .on_done = on_sampled };

static void sample_next(struct usage_sampler *m)
{
	struct node_target t = { .request = "usage" };

	m->sampling = sandbox_cache_next_ready(m->reactor->berthd->sandboxes, &m->asked);
	if (!m->sampling)
		return;
	t.generation = m->asked.generation;
	memcpy(t.sandbox, m->asked.id, sizeof(t.sandbox));
	node_call(&m->reactor->node, NODE_USAGE, &t, -1, &sampled_events, m);
}

static void on_sample(uv_timer_t *timer)
{
	struct usage_sampler *m = timer->data;

	if (m->sampling || !m->reactor->node.up)
		return;
	m->asked = (struct sandbox_cache_cursor){ 0 };
	sample_next(m);
}

static void start(struct usage_sampler *m, uv_timer_t *timer, uv_timer_cb on_time,
		  enum constant every)
{
	uint64_t ms = constant_ms(every, (unsigned)m->reactor->berthd->settings.timer_divisor);

	uv_timer_init(&m->reactor->loop, timer);
	timer->data = m;
	ms = ms < LEAST_MS ? LEAST_MS : ms;
	uv_timer_start(timer, on_time, ms, ms);
}

void usage_sampler_init(struct usage_sampler *m)
{
	pthread_mutex_init(&m->lock, NULL);
}

void usage_sampler_done(struct usage_sampler *m)
{
	size_t n;

	free(take_all(m, &n));
}

void usage_sampler_begin(struct usage_sampler *m, struct reactor *r)
{
	m->reactor = r;
	start(m, &m->flush, on_flush, CONSTANT_USED_FLUSH);
	start(m, &m->sample, on_sample, CONSTANT_SAMPLE);
}

void usage_sampler_end(struct usage_sampler *m)
{
	uv_close((uv_handle_t *)&m->flush, NULL);
	uv_close((uv_handle_t *)&m->sample, NULL);
}

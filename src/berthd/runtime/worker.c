#include "berthd/runtime/worker.h"

#include <signal.h>

#include "berthd/runtime/berthd.h"
#include "berthd/runtime/reactor.h"
#include "lib/str.h"
#include "lib/time.h"

static void put(struct job_queue *q, struct job *job)
{
	if (q->last)
		q->last->next = job;
	else
		q->first = job;
	q->last = job;
	q->count++;
}

static struct job *pop(struct job_queue *q)
{
	struct job *job = q->first;

	q->first = job->next;
	if (!q->first)
		q->last = NULL;
	q->count--;
	q->running++;
	return job;
}

static struct job_queue *queue_of(struct workers *w, const struct job *job)
{
	return job->background ? &w->background : &w->shares[job->share];
}

/* A collision only makes two owners wait for each other. */
size_t worker_share(const char *owner)
{
	return owner && *owner ? 1 + str_hash(owner) % (WORKER_SHARES - 1) : 0;
}

/* One worker is left for requests if there are two, and for other owners if there are several. */
static bool may_take_from(const struct workers *w, const struct job_queue *q)
{
	size_t several = q == &w->background ? 2 : WORKERS_SEVERAL;

	if (!q->first)
		return false;
	return q == &w->shares[0] || w->count < several || q->running + 1 < w->count;
}

static struct job_queue *next_share(struct workers *w)
{
	for (size_t i = 1; w->waiting && i <= WORKER_SHARES; i++) {
		size_t n = (w->turn + i) % WORKER_SHARES;

		if (!may_take_from(w, &w->shares[n]))
			continue;
		w->turn = n;
		return &w->shares[n];
	}
	return NULL;
}

struct job *workers_next(struct workers *w)
{
	struct job_queue *share;

	if (w->in_a_row < WORKER_FAIR || !may_take_from(w, &w->background)) {
		share = next_share(w);
		if (share) {
			w->in_a_row++;
			w->waiting--;
			return pop(share);
		}
		if (!may_take_from(w, &w->background))
			return NULL;
	}
	w->in_a_row = 0;
	return pop(&w->background);
}

/* At the end, what is queued is finished: by all, and in any order. */
static struct job *take_any(struct workers *w)
{
	for (size_t i = 0; w->waiting && i < WORKER_SHARES; i++) {
		if (!w->shares[i].first)
			continue;
		w->waiting--;
		return pop(&w->shares[i]);
	}
	return w->background.first ? pop(&w->background) : NULL;
}

static struct job *take(struct workers *w)
{
	struct job *job;

	pthread_mutex_lock(&w->lock);
	while (!(job = workers_next(w)) && !w->stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	if (!job)
		job = take_any(w);
	pthread_mutex_unlock(&w->lock);
	return job;
}

/* Another may take one now that was not to. */
static void end(struct workers *w, struct job_queue *q)
{
	pthread_mutex_lock(&w->lock);
	q->running--;
	if (q->first)
		pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

/* A database that is away at start is tried again with every job. */
static int run_job(struct job *job, struct workers *w, struct store **store)
{
	if (!*store) {
		if (store_open(w->database, store, &job->e) < 0)
			return -1;
		if (w->renews)
			store_renews(*store);
	}
	return job->run(job, *store, &job->e);
}

static void note_unwritable(struct workers *w, const struct job *job)
{
	if (!job->failed || !store_is_unwritable(&job->e))
		return;
	pthread_mutex_lock(&w->lock);
	w->unwritable = job->e;
	w->unwritable_ms = time_mono_ms();
	pthread_mutex_unlock(&w->lock);
}

bool workers_unwritable(struct workers *w, uint64_t within_ms, struct err *e)
{
	bool recent;

	pthread_mutex_lock(&w->lock);
	recent = w->unwritable_ms > 0 && time_mono_ms() - w->unwritable_ms < within_ms;
	if (recent)
		*e = w->unwritable;
	pthread_mutex_unlock(&w->lock);
	return recent;
}

static void *worker(void *arg)
{
	struct workers *w = arg;
	cleanup(store_closep) struct store *store = NULL;
	struct job *job;

	while ((job = take(w))) {
		struct job_queue *q = queue_of(w, job); /* the job is not ours once it is posted */

		job->failed = run_job(job, w, &store) < 0;
		note_unwritable(w, job);
		reactor_post(job->reactor, job);
		end(w, q);
	}
	return NULL;
}

int workers_open(struct workers *w, const char *database, size_t count, struct err *e)
{
	sigset_t all, before;
	size_t n = 0;
	int failed = 0;

	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->database = database;
	sigfillset(&all); /* signals are the first loop's business */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (n < count && n < WORKERS_MAX && !failed) {
		failed = pthread_create(&w->threads[n], NULL, worker, w);
		n += !failed;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_mutex_lock(&w->lock); /* they count each other */
	w->count = n;
	pthread_mutex_unlock(&w->lock);
	return failed ? err_sys(e, failed, "start %zu store workers", count) : 0;
}

void workers_close(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	for (size_t i = 0; i < w->count; i++)
		pthread_join(w->threads[i], NULL);
}

bool workers_put(struct workers *w, struct job *job)
{
	struct job_queue *q;
	bool full;

	job->next = NULL;
	job->failed = false;
	job->share = worker_share(job->owner);
	q = queue_of(w, job);
	pthread_mutex_lock(&w->lock);
	if (job->background)
		full = q->count == WORKER_QUEUE_MAX;
	else
		full = w->waiting == WORKER_QUEUE_MAX ||
		       (job->share && q->count == WORKER_SHARE_MAX);
	if (!full) {
		put(q, job);
		w->waiting += !job->background;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	return !full;
}

void worker_submit(struct workers *w, struct job *job)
{
	if (workers_put(w, job))
		return;
	job->failed = true;
	err_set(&job->e, ERR_BUSY, "too many requests wait for the database");
	reactor_post(job->reactor, job);
}

void job_submit(struct reactor *r, const char *owner, struct job *job, job_run_fn *run,
		job_done_fn *done)
{
	*job = (struct job){ .reactor = r, .owner = owner, .run = run, .done = done };
	worker_submit(&r->berthd->workers, job);
}

void job_submit_background(struct reactor *r, struct job *job, job_run_fn *run,
			   job_done_fn *done)
{
	*job = (struct job){ .reactor = r, .run = run, .done = done, .background = true };
	worker_submit(&r->berthd->workers, job);
}

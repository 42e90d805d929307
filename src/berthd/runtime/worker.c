#include "berthd/runtime/worker.h"

#include <signal.h>

#include "berthd/runtime/reactor.h"

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
	return job;
}

/* One worker is always left for requests, if there are several. */
static bool may_take_background(const struct workers *w)
{
	if (!w->background.first || (w->count > 1 && w->at_background + 1 >= w->count))
		return false;
	return !w->front.first || w->in_a_row >= WORKER_FAIR;
}

struct job *workers_next(struct workers *w)
{
	if (may_take_background(w)) {
		w->in_a_row = 0;
		w->at_background++;
		return pop(&w->background);
	}
	if (!w->front.first)
		return NULL;
	w->in_a_row++;
	return pop(&w->front);
}

/* At the end, what is queued is finished: by all, and in any order. */
static struct job *take(struct workers *w)
{
	struct job *job;

	pthread_mutex_lock(&w->lock);
	while (!(job = workers_next(w)) && !w->stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	if (!job && w->background.first) {
		w->at_background++;
		job = pop(&w->background);
	}
	pthread_mutex_unlock(&w->lock);
	return job;
}

/* Another may take one now that was not to. */
static void end_background(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->at_background--;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

/* A database that is away at start is tried again with every job. */
static int run(struct job *job, struct workers *w, struct store **store)
{
	if (!*store && store_open(w->database, store, &job->e) < 0)
		return -1;
	return job->run(job, *store, &job->e);
}

static void *worker(void *arg)
{
	struct workers *w = arg;
	cleanup(store_closep) struct store *store = NULL;
	struct job *job;

	while ((job = take(w))) {
		bool background = job->background; /* the job is not ours once it is posted */

		job->failed = run(job, w, &store) < 0;
		reactor_post(job->reactor, job);
		if (background)
			end_background(w);
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

void worker_submit(struct workers *w, struct job *job)
{
	struct job_queue *q = job->background ? &w->background : &w->front;
	bool full;

	job->next = NULL;
	job->failed = false;
	pthread_mutex_lock(&w->lock);
	full = q->count == WORKER_QUEUE_MAX;
	if (!full) {
		put(q, job);
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	if (!full)
		return;
	job->failed = true;
	err_set(&job->e, ERR_BUSY, "too many requests wait for the database");
	reactor_post(job->reactor, job);
}

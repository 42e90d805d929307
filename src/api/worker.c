#include "api/worker.h"

#include <errno.h>
#include <signal.h>

#include "api/reactor.h"

static struct job *take(struct workers *w)
{
	struct job *job;

	pthread_mutex_lock(&w->lock);
	while (!w->first && !w->stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	job = w->first;
	if (job) {
		w->first = job->next;
		w->queued--;
		if (!w->first)
			w->last = &w->first;
	}
	pthread_mutex_unlock(&w->lock);
	return job;
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
		job->failed = run(job, w, &store) < 0;
		reactor_post(job->reactor, job);
	}
	return NULL;
}

int workers_open(struct workers *w, const char *database, size_t count, struct err *e)
{
	sigset_t all, before;

	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->last = &w->first;
	w->database = database;
	sigfillset(&all); /* signals are the first loop's business */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (w->count < count && w->count < WORKERS_MAX &&
	       pthread_create(&w->threads[w->count], NULL, worker, w) == 0)
		w->count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return w->count > 0 ? 0 : err_sys(e, errno, "start a store worker");
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
	bool full;

	job->next = NULL;
	job->failed = false;
	pthread_mutex_lock(&w->lock);
	full = w->queued == WORKER_QUEUE_MAX;
	if (!full) {
		*w->last = job;
		w->last = &job->next;
		w->queued++;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	if (!full)
		return;
	job->failed = true;
	err_set(&job->e, ERR_BUSY, "too many requests wait for the database");
	reactor_post(job->reactor, job);
}

/*
 * Store workers: a fixed number of threads, each with its own connection to
 * PostgreSQL. A loop hands a job over and is told when it is done, on its own
 * thread; no loop ever waits for the database.
 *
 * A job without a waiting request is in the background: it is taken when nothing else is
 * there (and one after every so many others, so that it gets on), and never by
 * the last free worker.
 */
#pragma once

#include <pthread.h>

#include "lib/err.h"
#include "store/store.h"

#define WORKER_QUEUE_MAX 20000
#define WORKERS_MAX      64
#define WORKER_FAIR      32 /* so many others, then one of the background */

struct reactor;

struct job {
	struct reactor *reactor;
	int (*run)(struct job *job, struct store *store, struct err *e); /* on a worker */
	void (*done)(struct job *job);                                   /* back on the reactor */
	bool background;                                                 /* no request waits */
	bool failed;
	struct err e; /* if it failed */
	struct job *next;
};

struct job_queue {
	struct job *first, *last;
	size_t count;
};

struct workers {
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t wake;
	struct job_queue front, background;
	size_t at_background; /* workers that are at one of those now */
	size_t in_a_row;      /* taken from the front since the last of those */
	bool stopping;
	const char *database;
	pthread_t threads[WORKERS_MAX];
	size_t count;
};

must_check int workers_open(struct workers *w, const char *database, size_t count, struct err *e);
void workers_close(struct workers *w); /* finishes what is queued */

/* The job's memory is the caller's until done() was called. */
void worker_submit(struct workers *w, struct job *job);

/* The job a free worker takes next, under the lock; NULL: it waits. */
struct job *workers_next(struct workers *w);

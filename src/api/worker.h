/*
 * Store workers: a fixed number of threads, each with its own connection to
 * PostgreSQL. A loop hands a job over and is told when it is done, on its own
 * thread; no loop ever waits for the database.
 */
#pragma once

#include <pthread.h>

#include "lib/err.h"
#include "store/store.h"

#define WORKER_QUEUE_MAX 20000
#define WORKERS_MAX      64

struct reactor;

struct job {
	struct reactor *reactor;
	int (*run)(struct job *job, struct store *store, struct err *e); /* on a worker */
	void (*done)(struct job *job);                                   /* back on the reactor */
	bool failed;
	struct err e; /* if it failed */
	struct job *next;
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job *first, **last;
	size_t queued;
	bool stopping;
	const char *database;
	pthread_t threads[WORKERS_MAX];
	size_t count;
};

must_check int workers_open(struct workers *w, const char *database, size_t count, struct err *e);
void workers_close(struct workers *w); /* finishes what is queued */

/* The job's memory is the caller's until done() was called. */
void worker_submit(struct workers *w, struct job *job);

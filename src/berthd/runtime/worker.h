/*
 * Store workers: a fixed number of threads, each with its own connection to
 * PostgreSQL. A loop hands a job over and is told when it is done, on its own
 * thread; no loop ever waits for the database.
 *
 * A job without a waiting request is in the background: it is taken when nothing else is
 * there (and one after every so many others, so that it gets on), and never by
 * the last free worker.
 *
 * Jobs of requests wait in shares, by the hash of their owner, and the shares are served in turn:
 * the requests of one owner wait for each other, not those of all others for them. None has every
 * worker (if there are several), and none fills the whole queue.
 */
#pragma once

#include <pthread.h>

#include "lib/err.h"
#include "store/store.h"

#define WORKER_QUEUE_MAX 20000
#define WORKER_SHARES    64
#define WORKER_SHARE_MAX (WORKER_QUEUE_MAX / 4)
#define WORKERS_MAX      64
#define WORKERS_SEVERAL  4  /* from so many on one is kept from the owner that has the others */
#define WORKER_FAIR      32 /* so many others, then one of the background */

#define OWNER_UNKNOWN    "?"  /* of jobs of requests whose key is not known yet */
#define OWNER_HEALTH     "?h" /* of GET /v1/health, which wants no key */

struct job;
struct reactor;
typedef int job_run_fn(struct job *job, struct store *store, struct err *e);
typedef void job_done_fn(struct job *job);

struct job {
	struct reactor *reactor;
	job_run_fn *run;   /* on a worker */
	job_done_fn *done; /* back on the reactor */
	const char *owner; /* whose request waits; NULL: an admin's or berthd's own. For submit */
	bool background;   /* no request waits */
	bool failed;
	struct err e; /* if it failed */
	struct job *next;
	size_t share; /* worker_submit()'s */
};

struct job_queue {
	struct job *first, *last;
	size_t count;
	size_t running; /* jobs of it that workers are at now */
};

struct workers {
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t wake;
	struct job_queue shares[WORKER_SHARES], background;
	size_t waiting;  /* in all shares */
	size_t turn;     /* the share that was served last */
	size_t in_a_row; /* taken from the shares since the last of the background */
	bool stopping;
	struct err unwritable;  /* of the last job for which the database took no writes */
	uint64_t unwritable_ms; /* when that was, by time_mono_ms(); 0: never */
	const char *database;
	bool renews; /* for the lease alone: see store_renews(). Before workers_open() */
	pthread_t threads[WORKERS_MAX];
	size_t count;
};

must_check int workers_open(struct workers *w, const char *database, size_t count, struct err *e);
void workers_close(struct workers *w); /* finishes what is queued */

/* A request's job, or berthd's own that is not in the background. */
void job_submit(struct reactor *r, const char *owner, struct job *job, job_run_fn *run,
		job_done_fn *done);
void job_submit_background(struct reactor *r, struct job *job, job_run_fn *run,
			   job_done_fn *done);

/* The job's memory is the caller's until done() was called. */
void worker_submit(struct workers *w, struct job *job);

/* Queue it; false: it may not wait, the queue or its owner's share is full. */
must_check bool workers_put(struct workers *w, struct job *job);

/* The job a free worker takes next, under the lock; NULL: it waits. */
struct job *workers_next(struct workers *w);

/* True: within that time the database took no writes; and why. */
must_check bool workers_unwritable(struct workers *w, uint64_t within_ms, struct err *e);

/* The share of an owner: below WORKER_SHARES. */
size_t worker_share(const char *owner);

/*
 * One loop thread of berthd, and everything it owns: a listener, its
 * connections, a link to berth-node, followers of events. Reactors share only
 * what berthd.h names, each behind a lock of its own.
 */
#pragma once

#include <pthread.h>
#include <uv.h>

#include "berthd/runtime/node-link.h"
#include "berthd/runtime/worker.h"
#include "http/server.h"

#define REACTOR_READ_SIZE (256 * 1024)

struct berthd;
struct bus_event;
struct follower;
struct tail;

/* What higher rooms do on a loop. Set in struct berthd before the first reactor opens. */
struct reactor_hooks {
	http_fn request; /* of both listeners */
	void (*open)(struct reactor *r);
	void (*wake)(struct reactor *r); /* after the jobs that are done */
	void (*stop)(struct reactor *r); /* berthd ends: streams that never end must */
	void (*close)(struct reactor *r);
	void (*event)(struct reactor *r, const struct bus_event *event); /* see bus.h */
};

struct reactor {
	struct berthd *berthd;
	uv_loop_t loop;
	pthread_t thread;
	bool threaded;
	struct http_server server;
	struct http_server peer_server; /* for other hosts of the cell */
	int serving;                    /* servers that are open */
	struct node_link node;
	struct follower *followers; /* of GET /v1/events */
	struct event_ring *events;  /* the last ones */
	uv_timer_t heartbeat;       /* keeps their connections from looking dead */

	struct tail *tails; /* of execs' journals */

	uv_async_t wake; /* jobs are done, a journal has grown, or it is time to end */
	pthread_mutex_t lock;
	struct job *done, **done_last;
	bool stopping;

	/* One buffer for whatever is being read from a sandbox now; see exec.c */
	char *read_buffer;
};

must_check int reactor_open(struct reactor *r, struct berthd *b, struct err *e);
/* How many connections each of `servers` may have, if the process may have so many files. */
size_t reactor_connections(uint64_t files, size_t servers);
must_check int reactor_serve(struct reactor *r, struct err *e);
void reactor_run(struct reactor *r); /* until reactor_stop() */
void reactor_stop(struct reactor *r);
void reactor_close(struct reactor *r);

/* From any thread: have job->done() called on this reactor. */
void reactor_post(struct reactor *r, struct job *job);

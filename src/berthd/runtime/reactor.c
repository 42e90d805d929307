#include "berthd/runtime/reactor.h"

#include <stdlib.h>

#include "berthd/runtime/berthd.h"
#include "lib/loop.h"
#include "lib/proc.h"

#define CLOSE_GRACE_MS   2000
#define CONNECTIONS_MAX  20000 /* of one server */
#define FILES_KEPT_SHARE 4     /* one in so many descriptors, but at least */
#define FILES_KEPT_MIN   256   /* so many, is for journals, sandboxes and the database */

static struct job *take_done(struct reactor *r, bool *stopping)
{
	struct job *jobs;

	pthread_mutex_lock(&r->lock);
	jobs = r->done;
	r->done = NULL;
	r->done_last = &r->done;
	*stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return jobs;
}

static void on_closed(struct http_server *server)
{
	struct reactor *r = server->data;

	if (--r->serving == 0)
		uv_stop(&r->loop);
}

static void on_wake(uv_async_t *async)
{
	struct reactor *r = async->data;
	bool stopping;
	struct job *next;

	for (struct job *job = take_done(r, &stopping); job; job = next) {
		next = job->next; /* done() may free it */
		job->done(job);
	}
	r->berthd->hooks->wake(r);
	if (stopping && r->serving && !r->server.closing) {
		r->berthd->hooks->stop(r);
		http_server_close(&r->server, CLOSE_GRACE_MS, on_closed);
		if (r->serving > 1)
			http_server_close(&r->peer_server, CLOSE_GRACE_MS, on_closed);
	}
}

int reactor_open(struct reactor *r, struct berthd *b, struct err *e)
{
	int status = uv_loop_init(&r->loop);

	if (status < 0)
		return err_uv(e, status, "loop");
	r->berthd = b;
	r->read_buffer = xcalloc(1, REACTOR_READ_SIZE);
	pthread_mutex_init(&r->lock, NULL);
	r->done_last = &r->done;
	uv_async_init(&r->loop, &r->wake, on_wake);
	r->wake.data = r;
	b->hooks->open(r);
	node_link_open(&r->node, &r->loop, b->settings.node_socket);
	return 0;
}

/* Clients that only connect must leave us what we need to answer others. */
size_t reactor_connections(uint64_t files, size_t servers)
{
	uint64_t kept = files / FILES_KEPT_SHARE;
	uint64_t each;

	if (kept < FILES_KEPT_MIN)
		kept = FILES_KEPT_MIN;
	each = files > kept ? (files - kept) / servers : 0;
	each = each > 2UL * HTTP_REFUSING_MAX ? each - HTTP_REFUSING_MAX : HTTP_REFUSING_MAX;
	return each < CONNECTIONS_MAX ? (size_t)each : CONNECTIONS_MAX;
}

int reactor_serve(struct reactor *r, struct err *e)
{
	const struct berthd_settings *s = &r->berthd->settings;
	const char *peer_listen = s->peer_listen;
	http_fn request = r->berthd->hooks->request;
	size_t servers = s->loops * (peer_listen[0] ? 2 : 1);
	struct http_limits limits = { .connections = reactor_connections(proc_files(), servers) };

	if (http_server_open(&r->server, &r->loop, s->listen, &limits, request, e) < 0)
		return -1;
	r->server.data = r;
	r->serving++;
	if (!peer_listen[0])
		return 0;
	if (http_server_open(&r->peer_server, &r->loop, peer_listen, &limits, request, e) < 0)
		return err_wrap(e, "peer_listen");
	r->peer_server.data = r;
	r->serving++;
	return 0;
}

void reactor_run(struct reactor *r)
{
	uv_run(&r->loop, UV_RUN_DEFAULT);
}

void reactor_stop(struct reactor *r)
{
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_mutex_unlock(&r->lock);
	uv_async_send(&r->wake);
}

void reactor_close(struct reactor *r)
{
	node_link_close(&r->node);
	r->berthd->hooks->close(r);
	uv_close((uv_handle_t *)&r->wake, NULL);
	uv_run(&r->loop, UV_RUN_NOWAIT);
	free(r->read_buffer);
}

void reactor_post(struct reactor *r, struct job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&r->lock);
	*r->done_last = job;
	r->done_last = &job->next;
	pthread_mutex_unlock(&r->lock);
	uv_async_send(&r->wake);
}

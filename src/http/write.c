/* The way out of a connection. */
#include <stdlib.h>
#include <string.h>

#include "http/conn.h"

struct http_write {
	uv_write_t req;
	struct http_conn *conn;
	size_t len;
	char data[];
};

size_t conn_backlog(const struct http_conn *c)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);
}

/* A write of two bytes costs far more than two: what it stands in counts, too. */
size_t conn_held(const struct http_conn *c)
{
	return conn_backlog(c) + c->writes * sizeof(struct http_write);
}

static void tell_drained(struct http_conn *c)
{
	c->full = false;
	if (c->state == CONN_EXCHANGE && c->x.on_drain)
		c->x.on_drain(&c->x);
	else if (c->state == CONN_TUNNEL && c->tunnel.events->on_drain)
		c->tunnel.events->on_drain(c->tunnel.data);
	else if (c->state == CONN_HEAD && (c->ahead.len || !c->reading))
		conn_make_ready(c);
}

static void on_written(uv_write_t *req, int status)
{
	struct http_write *w = container_of(req, struct http_write, req);
	struct http_conn *c = w->conn;

	c->server->held -= sizeof(*w) + w->len;
	c->writes--;
	free(w);
	if (status < 0)
		conn_break(c);
	else if (c->full && conn_held(c) < c->server->limits.output_mark)
		tell_drained(c);
}

/* What the socket did not take, from byte `skip` on, in one piece. */
static void queue_rest(struct http_conn *c, const uv_buf_t *bufs, unsigned count, size_t skip,
		       size_t total)
{
	struct http_write *w = xrealloc(NULL, sizeof(*w) + (total - skip));
	uv_buf_t whole = uv_buf_init(w->data, 0);
	size_t len = 0;

	for (unsigned i = 0; i < count; i++) {
		size_t from = skip < bufs[i].len ? skip : bufs[i].len;

		skip -= from;
		if (from == bufs[i].len)
			continue;
		memcpy(w->data + len, bufs[i].base + from, bufs[i].len - from);
		len += bufs[i].len - from;
	}
	whole.len = w->len = len;
	w->conn = c;
	c->server->held += sizeof(*w) + len;
	c->writes++;
	if (conn_backlog(c) == 0)
		c->moved_at = uv_now(c->server->loop);
	if (uv_write(&w->req, (uv_stream_t *)&c->tcp, &whole, 1, on_written) < 0) {
		c->server->held -= sizeof(*w) + len;
		c->writes--;
		free(w);
		conn_break(c);
	}
}

/* Room for what a client does not take: its own, and that of all who do not read together. */
static bool has_room(const struct http_conn *c, size_t rest)
{
	size_t all = c->server->limits.output_total, own = conn_held(c);
	size_t more = rest + sizeof(struct http_write);

	return rest == 0 || (own < HTTP_OUTPUT_MAX && more <= HTTP_OUTPUT_MAX - own &&
			     c->server->held < all && more <= all - c->server->held);
}

bool conn_write(struct http_conn *c, const uv_buf_t *bufs, unsigned count)
{
	size_t total = 0;
	int sent = 0;

	if (c->state == CONN_CLOSED)
		return false;
	for (unsigned i = 0; i < count; i++)
		total += bufs[i].len;
	if (conn_backlog(c) == 0)
		sent = uv_try_write((uv_stream_t *)&c->tcp, bufs, count);
	if (sent == UV_EAGAIN)
		sent = 0;
	c->queued += total;
	if (sent < 0 || !has_room(c, total - (size_t)sent)) {
		conn_break(c);
		return false;
	}
	if ((size_t)sent < total)
		queue_rest(c, bufs, count, (size_t)sent, total);
	c->full = conn_held(c) >= c->server->limits.output_mark;
	return c->full;
}

/* The way out of a connection. */
#include <stdlib.h>
#include <string.h>

#include "http/conn.h"

struct http_write {
	uv_write_t req;
	struct http_conn *conn;
	size_t len;
	uint8_t share; /* whose it was when it was written: the next request may be another's */
	char data[];
};

static void count_in(const struct http_write *w)
{
	struct http_server *server = w->conn->server;

	server->held += sizeof(*w) + w->len;
	server->held_shares[w->share] += sizeof(*w) + w->len;
	w->conn->writes++;
}

static void count_out(const struct http_write *w)
{
	struct http_server *server = w->conn->server;

	server->held -= sizeof(*w) + w->len;
	server->held_shares[w->share] -= sizeof(*w) + w->len;
	w->conn->writes--;
}

size_t conn_backlog(const struct http_conn *c)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);
}

/* A write of two bytes costs far more than two: what it stands in counts, too. */
size_t conn_held(const struct http_conn *c)
{
	return conn_backlog(c) + c->writes * sizeof(struct http_write);
}

static uint8_t share_of(const struct http_conn *c)
{
	return c->x.share ? c->x.share : c->share;
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

	count_out(w);
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
	w->share = share_of(c);
	count_in(w);
	if (conn_backlog(c) == 0)
		c->moved_at = uv_now(c->server->loop);
	if (uv_write(&w->req, (uv_stream_t *)&c->tcp, &whole, 1, on_written) < 0) {
		count_out(w);
		free(w);
		conn_break(c);
	}
}

static bool fits(size_t more, size_t held, size_t max)
{
	return held < max && more <= max - held;
}

/*
 * Room for what a client does not take: its own, that of its owner's clients, and that of all
 * together. An owner whose clients do not read costs others nothing but the rest.
 */
static bool has_room(const struct http_conn *c, size_t rest)
{
	const struct http_server *server = c->server;
	size_t more = rest + sizeof(struct http_write);

	return rest == 0 ||
	       (fits(more, conn_held(c), HTTP_OUTPUT_MAX) &&
		fits(more, server->held_shares[share_of(c)], server->limits.output_share) &&
		fits(more, server->held, server->limits.output_total));
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

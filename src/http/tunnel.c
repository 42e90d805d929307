#include "http/tunnel.h"

#include <string.h>

#include "http/conn.h"

static struct http_conn *conn_of_tunnel(struct http_tunnel *t)
{
	return container_of(t, struct http_conn, tunnel);
}

struct http_tunnel *http_upgrade(struct http_exchange *x, const char *protocol,
				 const struct http_tunnel_events *events, void *data)
{
	static char begin[] = "HTTP/1.1 101 Switching Protocols\r\n"
			      "Connection: Upgrade\r\nUpgrade: ";
	static char end[] = "\r\n";
	struct http_conn *c = conn_of(x);
	uv_buf_t bufs[] = {
		{ .base = begin, .len = sizeof(begin) - 1 },
		{ .base = (char *)protocol, .len = strlen(protocol) },
		{ .base = end, .len = 2 },
		{ .base = x->reply_fields, .len = x->reply_fields_len },
		{ .base = end, .len = 2 },
	};

	c->tunnel = (struct http_tunnel){ .events = events, .data = data };
	(void)conn_write(c, bufs, array_len(bufs));
	conn_disown(c);
	if (c->state != CONN_EXCHANGE || !conn_move(c, CONN_TUNNEL))
		return &c->tunnel; /* broken: on_gone() will say so */
	c->deadline = 0;
	http_parser_forget(&c->parser);
	if (c->ahead.len || !c->reading)
		conn_make_ready(c);
	return &c->tunnel;
}

bool http_tunnel_write(struct http_tunnel *t, const void *bytes, size_t len)
{
	return http_tunnel_write_two(t, bytes, len, NULL, 0);
}

bool http_tunnel_write_two(struct http_tunnel *t, const void *first, size_t first_len,
			   const void *second, size_t second_len)
{
	struct http_conn *c = conn_of_tunnel(t);
	uv_buf_t bufs[] = { { .base = (char *)first, .len = first_len },
			    { .base = (char *)second, .len = second_len } };

	if (c->state != CONN_TUNNEL || (first_len == 0 && second_len == 0))
		return c->full;
	return conn_write(c, bufs, second_len > 0 ? 2 : 1);
}

bool http_tunnel_is_full(const struct http_tunnel *t)
{
	return conn_of_tunnel((struct http_tunnel *)t)->full;
}

void http_tunnel_pause(struct http_tunnel *t)
{
	t->paused = true;
}

void http_tunnel_resume(struct http_tunnel *t)
{
	t->paused = false;
	conn_make_ready(conn_of_tunnel(t));
}

void http_tunnel_close(struct http_tunnel *t)
{
	t->events = NULL;
	conn_last(conn_of_tunnel(t));
}

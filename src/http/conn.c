#include "http/conn.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/phase.h"

static const char *const state_names[CONN_STATE_COUNT] = {
	[CONN_HEAD] = "head",
	[CONN_EXCHANGE] = "exchange",
	[CONN_TUNNEL] = "tunnel",
	[CONN_LAST] = "last",
	[CONN_CLOSED] = "closed",
};

#define ENDS (PHASE_BIT(CONN_LAST) | PHASE_BIT(CONN_CLOSED))

static const uint32_t next_states[CONN_STATE_COUNT] = {
	[CONN_HEAD] = PHASE_BIT(CONN_EXCHANGE) | ENDS,
	[CONN_EXCHANGE] = PHASE_BIT(CONN_HEAD) | PHASE_BIT(CONN_TUNNEL) | ENDS,
	[CONN_TUNNEL] = ENDS,
	[CONN_LAST] = PHASE_BIT(CONN_CLOSED),
	[CONN_CLOSED] = 0,
};

static const struct phase_table states = { "an HTTP connection", state_names, next_states,
					   CONN_STATE_COUNT };

static const char *const body_names[BODY_STATE_COUNT] = {
	[BODY_UNASKED] = "unasked",
	[BODY_READ] = "read",
	[BODY_PAUSED] = "paused",
	[BODY_DRAIN] = "drain",
	[BODY_DONE] = "done",
};

#define REPLIED (PHASE_BIT(BODY_DRAIN) | PHASE_BIT(BODY_DONE))

static const uint32_t next_bodies[BODY_STATE_COUNT] = {
	[BODY_UNASKED] = PHASE_BIT(BODY_READ) | REPLIED,
	[BODY_READ] = PHASE_BIT(BODY_PAUSED) | REPLIED,
	[BODY_PAUSED] = PHASE_BIT(BODY_READ) | REPLIED,
	[BODY_DRAIN] = PHASE_BIT(BODY_DONE),
	[BODY_DONE] = PHASE_BIT(BODY_DONE), /* there was none, and the handler is told so */
};

static const struct phase_table bodies = { "the body of a request", body_names, next_bodies,
					   BODY_STATE_COUNT };

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);
static void adjust_reading(struct http_conn *c);

/* ---- small words ---- */

bool conn_move(struct http_conn *c, enum conn_state to)
{
	return phase_move(&states, &c->state, to);
}

void conn_move_body(struct http_conn *c, enum body_state to)
{
	(void)!phase_move(&bodies, &c->body, to); /* no step could be undone */
}

void conn_set_deadline(struct http_conn *c, uint64_t ms)
{
	c->deadline = ms ? uv_now(c->server->loop) + ms : 0;
}

void conn_await_body(struct http_conn *c)
{
	c->came = 0;
	conn_set_deadline(c, c->server->limits.body_ms);
	if (c->whole_by && c->whole_by < c->deadline)
		c->deadline = c->whole_by;
}

/* Time is given for bytes, not for one: a client that sends few would stay for ever. */
static void body_came(struct http_conn *c, size_t len)
{
	c->came += len;
	if (c->came >= c->server->limits.body_least)
		conn_await_body(c);
}

bool conn_is_idle(const struct http_conn *c)
{
	return c->state == CONN_HEAD && c->parser.head.len == 0 && c->ahead.len == 0 &&
	       conn_backlog(c) == 0;
}

static bool wants_body(const struct http_conn *c)
{
	return c->body == BODY_READ || c->body == BODY_DRAIN;
}

static bool wants_input(const struct http_conn *c)
{
	switch ((enum conn_state)c->state) {
	case CONN_HEAD:
		return !c->full; /* a client that sends ahead must also read */
	case CONN_EXCHANGE:
		return wants_body(c);
	case CONN_TUNNEL:
		return !c->tunnel.paused;
	case CONN_LAST:
	case CONN_CLOSED:
	case CONN_STATE_COUNT:
		break;
	}
	return false;
}

/* ---- the end ---- */

static void unlink_conn(struct http_conn *c)
{
	struct http_server *server = c->server;

	for (struct http_conn **at = &server->ready_list; *at; at = &(*at)->ready_next)
		if (*at == c) {
			*at = c->ready_next;
			break;
		}
	if (c->prev)
		c->prev->next = c->next;
	else
		server->connections = c->next;
	if (c->next)
		c->next->prev = c->prev;
	server->connection_count--;
	server->conn_shares[c->counted]--;
}

/* Tell the owner, once. What was an exchange or a tunnel has no owner after it. */
static void tell_gone(struct http_conn *c)
{
	const struct http_tunnel_events *events = take_ptr(c->tunnel.events);
	http_fn on_gone = take_ptr(c->x.on_gone);

	if (events)
		events->on_gone(c->tunnel.data);
	else if (on_gone)
		on_gone(&c->x);
	conn_disown(c);
}

static void on_conn_closed(uv_handle_t *handle)
{
	struct http_conn *c = handle->data;

	tell_gone(c);
	unlink_conn(c);
	http_parser_done(&c->parser);
	c->server->ahead -= c->ahead.len;
	buf_done(&c->ahead);
	buf_done(&c->held);
	free(c);
}

void conn_break(struct http_conn *c)
{
	if (c->state == CONN_CLOSED || !conn_move(c, CONN_CLOSED))
		return;
	uv_close((uv_handle_t *)&c->tcp, on_conn_closed);
}

static void on_shut(uv_shutdown_t *req, int status)
{
	struct http_conn *c = req->data;

	free(req);
	c->shut = true;
	if (status < 0 || c->eof)
		conn_break(c);
	else
		conn_set_deadline(c, HTTP_LINGER_MS);
}

void conn_last(struct http_conn *c)
{
	uv_shutdown_t *req;

	if (c->state == CONN_CLOSED || c->state == CONN_LAST || !conn_move(c, CONN_LAST))
		return;
	c->deadline = 0; /* while bytes are queued the stall limit holds */
	http_parser_forget(&c->parser);
	req = xcalloc(1, sizeof(*req));
	req->data = c;
	if (uv_shutdown(req, (uv_stream_t *)&c->tcp, on_shut) < 0) {
		free(req);
		conn_break(c);
		return;
	}
	adjust_reading(c);
}

void conn_disown(struct http_conn *c)
{
	struct http_exchange *x = &c->x;

	c->share = x->share ? x->share : c->share; /* a tunnel's output is of its owner, too */
	http_collect_free(take_ptr(x->collect));
	free(take_ptr(x->reply_fields));
	*x = (struct http_exchange){ 0 };
}

static void await_head(struct http_conn *c, uint64_t ms)
{
	c->head_since = uv_now(c->server->loop);
	conn_set_deadline(c, ms);
}

void conn_finish(struct http_conn *c)
{
	if (c->state != CONN_EXCHANGE)
		return;
	if (!c->keep_alive || c->body != BODY_DONE || c->server->closing) {
		conn_last(c);
		return;
	}
	if (!conn_move(c, CONN_HEAD))
		return conn_break(c);
	c->form = REPLY_WHOLE; /* a next head that is malformed is refused, not broken off */
	http_parser_next(&c->parser);
	await_head(c, c->counted ? c->server->limits.idle_ms : c->server->limits.head_ms);
	if (c->ahead.len || !c->reading)
		conn_make_ready(c);
}

void conn_refuse(struct http_conn *c, int status, const char *reason)
{
	struct err e = { .code = status == 503 ? ERR_BUSY : ERR_INVALID };
	char body[400], text[800];
	int n;

	tell_gone(c);
	if (c->state == CONN_CLOSED || c->form != REPLY_WHOLE) {
		conn_break(c);
		return;
	}
	n = snprintf(body, sizeof(body),
		     "{\"code\":\"%s\",\"message\":\"%.100s\",\"remediation\":\"%s\","
		     "\"request_id\":\"\"}\n",
		     err_name(e.code), reason, err_remediation(&e));
	n = snprintf(text, sizeof(text),
		     "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
		     "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
		     status, http_status_text(status), n, body);
	(void)conn_write(c, &(uv_buf_t){ .base = text, .len = (size_t)n }, 1);
	conn_last(c);
}

/* ---- input ---- */

static void on_body_bytes(struct http_parser *p, const char *data, size_t len)
{
	struct http_conn *c = container_of(p, struct http_conn, parser);

	if (c->body == BODY_DRAIN)
		c->drained += len;
	else if (c->state == CONN_EXCHANGE && c->x.on_body)
		c->x.on_body(&c->x, data, len);
}

static void begin_exchange(struct http_conn *c)
{
	struct http_parser *p = &c->parser;
	struct http_exchange *x = &c->x;
	const char *expect = http_parser_find(p, "Expect");
	char *target = p->head.data + p->target, *mark = strchr(target, '?');

	if (mark)
		*mark = '\0';
	*x = (struct http_exchange){
		.method = http_parser_method(p),
		.path = target,
		.query = mark ? mark + 1 : "",
		.upgrade = p->upgrade ? http_parser_find(p, "Upgrade") : NULL,
		.content_length = http_parser_content_length(p),
	};
	if (!conn_move(c, CONN_EXCHANGE))
		return conn_break(c);
	c->body = p->whole ? BODY_DONE : BODY_UNASKED;
	c->keep_alive = p->keep_alive;
	c->head_only = p->llhttp.method == HTTP_HEAD;
	c->share = 0;
	c->tag[0] = '\0';
	c->continue_due = !p->whole && expect && strcasecmp(expect, "100-continue") == 0;
	c->form = REPLY_WHOLE;
	c->drained = 0;
	c->whole_by = 0;
	c->deadline = 0;
	c->server->on_request(x);
}

static size_t take_head(struct http_conn *c, const char *data, size_t len)
{
	enum parse_result result;
	size_t used;

	if (c->parser.head.len == 0)
		conn_set_deadline(c, c->server->limits.head_ms);
	result = http_parser_head(&c->parser, data, len, &used);
	if (result == PARSE_BAD)
		conn_refuse(c, c->parser.status, c->parser.reason);
	else if (result == PARSE_DONE)
		begin_exchange(c);
	return used;
}

/* The request's end was seen, or enough of it: the reply may go. */
static void release_held(struct http_conn *c)
{
	uv_buf_t held = uv_buf_init(c->held.data, (unsigned)c->held.len);

	(void)conn_write(c, &held, 1);
	buf_done(&c->held);
	conn_finish(c);
}

static void body_ended(struct http_conn *c)
{
	bool drained = c->body == BODY_DRAIN;
	http_fn on_end = take_ptr(c->x.on_body_end);

	conn_move_body(c, BODY_DONE);
	c->deadline = 0;
	if (drained)
		release_held(c);
	else if (on_end)
		on_end(&c->x);
}

static size_t take_body(struct http_conn *c, const char *data, size_t len)
{
	enum parse_result result;
	size_t used;

	c->continue_due = false;
	body_came(c, len);
	result = http_parser_body(&c->parser, data, len, &used);
	if (c->state != CONN_EXCHANGE) /* a callback ended it */
		return used;
	if (result == PARSE_BAD)
		conn_refuse(c, c->parser.status, c->parser.reason);
	else if (result == PARSE_DONE)
		body_ended(c);
	else if (c->body == BODY_DRAIN && c->drained > HTTP_DRAIN_MAX)
		release_held(c);
	else if (c->body == BODY_PAUSED)
		c->deadline = 0;
	return used;
}

/*
 * A few requests in a turn: what is answered at once, such as a refusal, would otherwise be served
 * for as long as one client can send, while no other is.
 */
static size_t consume(struct http_conn *c, const char *data, size_t len)
{
	size_t used = 0, heads = 0;

	while (used < len && wants_input(c)) {
		if (c->state == CONN_HEAD && heads++ == HTTP_TURN_MAX)
			break;
		if (c->state == CONN_HEAD) {
			used += take_head(c, data + used, len - used);
		} else if (c->state == CONN_EXCHANGE) {
			used += take_body(c, data + used, len - used);
		} else {
			used += c->tunnel.events->on_data(c->tunnel.data, data + used, len - used);
		}
	}
	return c->state >= CONN_LAST ? len : used;
}

/*
 * Reading goes on while a handler works, to see the client leave, until too much
 * is read ahead, of this connection or of all. After our last byte it goes on as
 * well: a close with unread bytes would be a reset, and could eat our reply.
 */
static bool may_read(const struct http_conn *c)
{
	bool first = wants_input(c) && c->ahead.len == 0; /* no others wait before it */
	bool room = c->ahead.len < HTTP_AHEAD_MAX &&
		    (first || c->server->ahead < c->server->limits.ahead_total);

	return !c->eof && (room || c->state == CONN_LAST);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct http_conn *c = handle->data;

	(void)suggested; /* none, and reading stops: others have read ahead since it began */
	*buf = uv_buf_init(c->server->read_buffer, may_read(c) ? HTTP_READ_SIZE : 0);
}

static void adjust_reading(struct http_conn *c)
{
	bool want = may_read(c);

	if (c->state == CONN_CLOSED || want == c->reading)
		return;
	c->reading = want;
	if (!want)
		uv_read_stop((uv_stream_t *)&c->tcp);
	else if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) < 0)
		conn_break(c);
}

/* The client sends no more. What it sent before is still answered, turn by turn. */
static void end_input(struct http_conn *c)
{
	if (c->state == CONN_HEAD && c->ready && c->ahead.len > 0)
		return;
	if (c->state == CONN_HEAD && conn_backlog(c) > 0)
		conn_last(c);
	else if (c->state != CONN_LAST || c->shut)
		conn_break(c);
}

void conn_resume(struct http_conn *c)
{
	size_t used;

	if (c->body == BODY_DONE && c->state == CONN_EXCHANGE && c->x.on_body_end)
		body_ended(c); /* there was none, and the handler asked for it */
	used = consume(c, c->ahead.data, c->ahead.len);
	c->server->ahead -= used;
	if (used < c->ahead.len)
		buf_drop(&c->ahead, used);
	else
		buf_done(&c->ahead);
	if (c->ahead.len > 0 && wants_input(c))
		conn_make_ready(c); /* its turn is over: after the others */
	adjust_reading(c);
	if (c->eof)
		end_input(c);
}

static void on_eof(struct http_conn *c)
{
	c->eof = true;
	adjust_reading(c);
	end_input(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_conn *c = stream->data;
	size_t used = 0;

	if (n == UV_ENOBUFS)
		adjust_reading(c);
	else if (n == UV_EOF)
		on_eof(c);
	else if (n < 0)
		conn_break(c);
	if (n <= 0)
		return;
	if (c->ahead.len == 0)
		used = consume(c, buf->base, (size_t)n);
	if (used < (size_t)n && c->state < CONN_LAST) {
		buf_add(&c->ahead, buf->base + used, (size_t)n - used);
		c->server->ahead += (size_t)n - used;
		if (wants_input(c))
			conn_make_ready(c);
	}
	adjust_reading(c);
}

/* ---- the beginning, and the clock ---- */

void conn_accept(struct http_server *server)
{
	struct http_conn *c = xcalloc(1, sizeof(*c));

	c->server = server;
	c->ahead = buf_make(HTTP_AHEAD_MAX + HTTP_READ_SIZE + 1);
	http_parser_init(&c->parser, server->limits.head);
	c->parser.on_body = on_body_bytes;
	c->next = server->connections;
	if (c->next)
		c->next->prev = c;
	server->connections = c;
	server->connection_count++;
	server->conn_shares[c->counted]++;
	if (uv_tcp_init(server->loop, &c->tcp) < 0)
		abort(); /* it cannot: there is no socket yet */
	c->tcp.data = c;
	if (uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&c->tcp) < 0) {
		conn_break(c);
		return;
	}
	(void)uv_tcp_keepalive(&c->tcp, 1, HTTP_QUIET_S); /* without it a stream is only older */
	await_head(c, server->limits.head_ms);
	adjust_reading(c);
	/* Saying so takes a moment, and must not become a flood of its own. */
	if (server->connection_count > server->limits.connections + HTTP_REFUSING_MAX)
		conn_break(c);
	else if (server->connection_count > server->limits.connections)
		conn_refuse(c, 503, "too many connections");
}

static bool is_stalled(struct http_conn *c, uint64_t now)
{
	uint64_t moved = c->queued - conn_backlog(c);

	if (conn_backlog(c) == 0 || moved != c->moved) {
		c->moved = moved;
		c->moved_at = now;
	}
	return now - c->moved_at >= c->server->limits.stall_ms;
}

/* While too much is read ahead the end would not be seen: ask the kernel. */
static bool has_left_unseen(const struct http_conn *c)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	uv_os_fd_t fd;

	if (c->reading || c->eof || uv_fileno((const uv_handle_t *)&c->tcp, &fd) < 0 ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return false;
	return info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_CLOSE;
}

/* Clients that show no key must not keep all connections: owners have room in three quarters. */
static bool is_crowding(const struct http_conn *c, uint64_t now)
{
	const struct http_server *server = c->server;
	size_t quarter = server->limits.connections / 4;

	return c->counted == 0 && c->state == CONN_HEAD && conn_backlog(c) == 0 &&
	       c->ahead.len == 0 && server->conn_shares[0] > quarter &&
	       server->connection_count > server->limits.connections - quarter &&
	       now - c->head_since >= HTTP_UNOWNED_MS;
}

void conn_check(struct http_conn *c)
{
	uint64_t now = uv_now(c->server->loop);
	/* A client that still takes what we send is held to the stall limit alone. */
	bool late = c->deadline && now >= c->deadline && conn_backlog(c) == 0;

	if (c->state == CONN_CLOSED)
		return;
	if (is_stalled(c, now) || has_left_unseen(c) || is_crowding(c, now) ||
	    (late && (conn_is_idle(c) || c->state == CONN_LAST)))
		conn_break(c);
	else if (late && c->held.len)
		release_held(c);
	else if (late)
		conn_refuse(c, 408, "the request did not come in time");
}

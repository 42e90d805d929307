#include "http/server.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "http/address.h"
#include "http/conn.h"
#include "lib/loop.h"
#include "lib/str.h"

#define BACKLOG       1024
#define SWEEP_MAX_MS  1000
#define LIMIT(v, def) ((v) = (v) ? (v) : (def))

static void fill_limits(struct http_limits *l)
{
	LIMIT(l->head, HTTP_HEAD_MAX);
	LIMIT(l->connections, 20000);
	LIMIT(l->conn_share, l->connections / 4 * 3);
	LIMIT(l->head_ms, 15000);
	LIMIT(l->idle_ms, 75000);
	LIMIT(l->body_ms, 60000);
	LIMIT(l->body_least, 1024);
	LIMIT(l->whole_ms, 120000);
	LIMIT(l->body_total, HTTP_BODY_TOTAL);
	LIMIT(l->body_share, HTTP_BODY_TOTAL / 4);
	LIMIT(l->ahead_total, HTTP_AHEAD_TOTAL);
	LIMIT(l->stall_ms, 60000);
	LIMIT(l->output_mark, HTTP_OUTPUT_MARK);
	LIMIT(l->output_total, HTTP_OUTPUT_TOTAL);
	LIMIT(l->output_share, HTTP_OUTPUT_TOTAL / 2);
}

/* ---- the listener ---- */

static int bind_socket(const char *address, bool shared, int *ret, struct err *e)
{
	const int on = 1, share = shared;
	struct sockaddr_storage sa = { 0 };
	cleanup(close_fd) int fd = -1;
	socklen_t len;

	if (http_address(address, &sa, e) < 0)
		return -1;
	len = sa.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof(share)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0) /* is inherited */
		return err_sys(e, errno, "set up a socket");
	if (bind(fd, (struct sockaddr *)&sa, len) < 0)
		return err_sys(e, errno, "listen at %s", address);
	*ret = take_fd(fd);
	return 0;
}

int http_server_alone(const char *address, struct err *e)
{
	cleanup(close_fd) int fd = -1;

	if (bind_socket(address, false, &fd, e) == 0)
		return 0;
	return err_fix(e, "Another program may listen there, another berthd for one: end it, or "
			  "choose another port.");
}

static int open_socket(const char *address, int *ret, struct err *e)
{
	cleanup(close_fd) int fd = -1;

	if (bind_socket(address, true, &fd, e) < 0)
		return -1;
	if (listen(fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen at %s", address);
	*ret = take_fd(fd);
	return 0;
}

int http_server_port(const struct http_server *server)
{
	struct sockaddr_storage sa = { 0 };
	int len = sizeof(sa);

	if (uv_tcp_getsockname(&server->listener, (struct sockaddr *)&sa, &len) < 0)
		return -1;
	return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
					      : ((struct sockaddr_in *)&sa)->sin_port);
}

/* ---- the end ---- */

static void on_handle_closed(uv_handle_t *handle)
{
	struct http_server *server = handle->data;

	if (--server->open_handles > 0)
		return;
	free(take_ptr(server->read_buffer));
	if (server->on_closed)
		server->on_closed(server);
}

static void close_when_empty(struct http_server *server)
{
	if (server->connections || uv_is_closing((uv_handle_t *)&server->sweep))
		return;
	uv_close((uv_handle_t *)&server->sweep, on_handle_closed);
	uv_close((uv_handle_t *)&server->ready, on_handle_closed);
}

static void on_sweep(uv_timer_t *timer)
{
	struct http_server *server = timer->data;
	bool over = server->closing && uv_now(server->loop) >= server->close_by;

	for (struct http_conn *c = server->connections; c; c = c->next) {
		if (over || (server->closing && conn_is_idle(c)))
			conn_break(c);
		else
			conn_check(c);
	}
	if (server->closing)
		close_when_empty(server);
}

void http_server_break(struct http_server *server, const char *tag)
{
	for (struct http_conn *c = server->connections; c; c = c->next)
		if ((c->state == CONN_EXCHANGE || c->state == CONN_TUNNEL) &&
		    strcmp(c->tag, tag) == 0)
			conn_break(c);
}

void http_server_close(struct http_server *server, uint64_t grace_ms,
		       void (*on_closed)(struct http_server *server))
{
	if (server->closing)
		return;
	server->closing = true;
	server->on_closed = on_closed;
	server->close_by = uv_now(server->loop) + grace_ms;
	uv_close((uv_handle_t *)&server->listener, on_handle_closed);
	for (struct http_conn *c = server->connections; c; c = c->next)
		if (conn_is_idle(c) || grace_ms == 0)
			conn_break(c);
	/* The sweep ends it when the last connection is gone. */
	uv_timer_start(&server->sweep, on_sweep, 0, 20);
}

/* ---- the clock ---- */

const char *server_date(struct http_server *server)
{
	uint64_t second = uv_now(server->loop) / 1000;
	struct tm tm;
	time_t now;

	if (second == server->date_second && server->date[0])
		return server->date;
	server->date_second = second;
	now = time(NULL);
	gmtime_r(&now, &tm);
	strftime(server->date, sizeof(server->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	return server->date;
}

/* ---- connections that may go on ---- */

static void on_ready(uv_idle_t *idle)
{
	struct http_server *server = idle->data;
	struct http_conn *list = take_ptr(server->ready_list);

	uv_idle_stop(idle);
	while (list) {
		struct http_conn *c = list;

		list = take_ptr(c->ready_next);
		c->ready = false;
		conn_resume(c);
	}
}

void conn_make_ready(struct http_conn *c)
{
	struct http_server *server = c->server;

	if (c->ready || c->state == CONN_CLOSED)
		return;
	c->ready = true;
	c->ready_next = server->ready_list;
	server->ready_list = c;
	uv_idle_start(&server->ready, on_ready);
}

/* ---- the beginning ---- */

static void on_connection(uv_stream_t *listener, int status)
{
	if (status == 0)
		conn_accept(listener->data);
}

/* Often enough that a deadline is missed by a quarter at most, or by a second. */
static uint64_t sweep_interval(const struct http_limits *l)
{
	const uint64_t limits[] = { l->head_ms, l->idle_ms, l->body_ms, l->whole_ms,
				    l->stall_ms };
	uint64_t every = SWEEP_MAX_MS;

	for (size_t i = 0; i < array_len(limits); i++)
		if (limits[i] / 4 < every)
			every = limits[i] / 4 + 1;
	return every;
}

int http_server_open(struct http_server *server, uv_loop_t *loop, const char *address,
		     const struct http_limits *limits, http_fn on_request, struct err *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	cleanup(close_fd) int fd = -1;
	uint64_t every;

	/* A client may leave at any write, and libuv does not ask for EPIPE alone. */
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return err_sys(e, errno, "ignore SIGPIPE");
	if (open_socket(address, &fd, e) < 0)
		return -1;
	*server = (struct http_server){ .loop = loop, .on_request = on_request };
	if (limits)
		server->limits = *limits;
	fill_limits(&server->limits);
	server->read_buffer = xcalloc(1, HTTP_READ_SIZE);

	/* The socket is bound and listening: the rest could fail only by our mistake. */
	if (uv_tcp_init(loop, &server->listener) || uv_timer_init(loop, &server->sweep) ||
	    uv_idle_init(loop, &server->ready) || uv_tcp_open(&server->listener, take_fd(fd)) ||
	    uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection))
		abort();
	server->open_handles = 3;
	server->listener.data = server->sweep.data = server->ready.data = server;
	every = sweep_interval(&server->limits);
	uv_timer_start(&server->sweep, on_sweep, every, every);
	return 0;
}

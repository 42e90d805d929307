/*
 * A small site on a loop in a thread of its own, and a blocking client beside
 * it: what the tests of the engine share.
 */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server.h"
#include "http/target.h"
#include "http/tunnel.h"
#include "http/websocket.h"
#include "lib/str.h"
#include "lib/time.h"
#include "test.h"

struct site {
	struct http_server server;
	uv_loop_t loop;
	uv_async_t stop;
	pthread_t thread;
	uint64_t grace_ms;
	int loop_left; /* what uv_loop_close() said */
	bool collect_all;
	atomic_int gone, requests, stuck, closed;
	atomic_int held, go_on, marked;
	atomic_ullong streamed, received;
};

struct flow { /* one stream, upload or tunnel of the site */
	struct site *site;
	struct http_tunnel *tunnel;
	struct websocket *socket;
	struct http_exchange *x;
	uv_timer_t timer;
	uint64_t left;
};

static char page[64 * 1024];

static inline struct site *site_of(struct http_exchange *x)
{
	return http_exchange_server(x)->data;
}

static void on_gone(struct http_exchange *x)
{
	site_of(x)->gone++;
	free(x->data);
}

/* GET /stream?n=BYTES: as much as the client takes, and no more. */
static void go_on_streaming(struct http_exchange *x)
{
	struct flow *f = x->data;

	while (f->left > 0) {
		size_t len = f->left < sizeof(page) ? f->left : sizeof(page);
		bool full = http_stream_data(x, page, len);

		f->left -= len;
		f->site->streamed += len;
		if (full && f->left)
			return;
	}
	free(f);
	http_stream_end(x);
}

static void stream(struct http_exchange *x)
{
	struct flow *f = xcalloc(1, sizeof(*f));
	char n[32] = "0";
	bool found;
	struct err e;

	f->site = site_of(x);
	CHECK_OK(http_query(x->query, "n", n, sizeof(n), &found, &e), &e);
	CHECK_OK(str_u64(n, &f->left, &e), &e);
	snprintf(n, sizeof(n), "0");
	CHECK_OK(http_query(x->query, "share", n, sizeof(n), &found, &e), &e);
	if (!http_own(x, (uint8_t)atoi(n))) { /* NOLINT(cert-err34-c): written by the test */
		free(f);
		return http_reply(x, 503, NULL, NULL, 0);
	}
	x->data = f;
	x->on_gone = on_gone;
	x->on_drain = go_on_streaming;
	http_stream_begin(x, 200, "application/octet-stream");
	go_on_streaming(x);
}

/* POST /echo: the body, back in one piece of at most 1 MiB. */
static void on_whole(struct http_exchange *x, const char *body, size_t len, const struct err *e)
{
	if (e)
		http_reply(x, err_http_status(e->code), "text/plain", e->msg, strlen(e->msg));
	else
		http_reply(x, 200, "text/plain", body, len);
}

static void echo(struct http_exchange *x)
{
	x->on_gone = on_gone;
	http_collect(x, 1 << 20, on_whole);
}

/* POST /sip: a body read in gulps, with a pause after each. */
static void on_timer_closed(uv_handle_t *timer)
{
	free(timer->data);
}

static void on_sip_gone(struct http_exchange *x)
{
	struct flow *f = x->data;

	f->site->gone++;
	uv_close((uv_handle_t *)&f->timer, on_timer_closed);
}

static void on_thirsty(uv_timer_t *timer)
{
	struct flow *f = timer->data;

	http_body_resume(f->x);
}

static void on_gulp(struct http_exchange *x, const char *data, size_t len)
{
	struct flow *f = x->data;

	(void)data;
	f->left += len;
	f->site->received += len;
	http_body_pause(x);
	uv_timer_start(&f->timer, on_thirsty, 10, 0);
}

static void on_sip_end(struct http_exchange *x)
{
	struct flow *f = x->data;
	char text[32];
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)f->left);

	uv_close((uv_handle_t *)&f->timer, on_timer_closed);
	http_reply(x, 200, "text/plain", text, (size_t)n);
}

static void sip(struct http_exchange *x)
{
	struct flow *f = xcalloc(1, sizeof(*f));

	*f = (struct flow){ .site = site_of(x), .x = x };
	uv_timer_init(&f->site->loop, &f->timer);
	f->timer.data = f;
	x->data = f;
	x->on_gone = on_sip_gone;
	http_body_read(x, on_gulp, on_sip_end);
}

/* Upgrade: what comes goes back, and reading waits while writing is full. */
static size_t on_tunnel_data(void *data, const char *bytes, size_t len)
{
	struct flow *f = data;

	f->site->received += len;
	if (len == 4 && memcmp(bytes, "quit", 4) == 0) {
		(void)http_tunnel_write(f->tunnel, "bye", 3);
		http_tunnel_close(f->tunnel);
		free(f);
		return len;
	}
	if (http_tunnel_write(f->tunnel, bytes, len))
		http_tunnel_pause(f->tunnel);
	return len;
}

static void on_tunnel_drain(void *data)
{
	struct flow *f = data;

	http_tunnel_resume(f->tunnel);
}

static void on_tunnel_gone(void *data)
{
	struct flow *f = data;

	f->site->gone++;
	free(f);
}

static void upgrade(struct http_exchange *x)
{
	static const struct http_tunnel_events events = { on_tunnel_data, on_tunnel_drain,
							  on_tunnel_gone };
	struct flow *f = xcalloc(1, sizeof(*f));

	f->site = site_of(x);
	CHECK(http_reply_header(x, "X-Good", "tunnel"));
	f->tunnel = http_upgrade(x, "echo", &events, f);
}

/* A WebSocket: what comes goes back; "quit" ends it. */
static void on_message(void *data, bool text, const char *bytes, size_t len)
{
	struct flow *f = data;

	if (len == 4 && memcmp(bytes, "quit", 4) == 0) {
		websocket_close(f->socket, WS_CLOSE_NORMAL);
		free(f);
		return;
	}
	if (websocket_send(f->socket, text, bytes, len))
		websocket_pause(f->socket);
}

static void on_socket_drain(void *data)
{
	websocket_resume(((struct flow *)data)->socket);
}

static void accept_socket(struct http_exchange *x)
{
	static const struct websocket_events events = { on_message, on_socket_drain,
							on_tunnel_gone };
	struct flow *f;
	struct err e;

	if (websocket_check(x, &e) < 0) {
		http_reply(x, 400, "text/plain", e.msg, strlen(e.msg));
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->site = site_of(x);
	f->socket = websocket_accept(x, &events, f);
}

/* POST /stuck: reads once, then never again. */
static void on_stuck(struct http_exchange *x, const char *data, size_t len)
{
	(void)data;
	(void)len;
	site_of(x)->stuck = 1;
	http_body_pause(x);
}

static void stuck(struct http_exchange *x)
{
	x->on_gone = on_gone;
	http_body_read(x, on_stuck, NULL);
}

static void hang(struct http_exchange *x)
{
	x->on_gone = on_gone;
}

static void sse(struct http_exchange *x)
{
	x->on_gone = on_gone;
	http_stream_begin(x, 200, "text/event-stream");
	(void)http_stream_data(x, ": hello\n\n", 9);
}

static void json(struct http_exchange *x)
{
	CHECK(!http_reply_header(x, "X-Bad", "a\r\nb: c"));
	CHECK(!http_reply_header(x, "X Bad", "a"));
	CHECK(http_reply_header(x, "X-Good", "yes"));
	http_reply(x, 200, "application/json", "{}", 2);
}

/* GET /later: answered from the loop, not from within on_request(). */
static void on_later(uv_timer_t *timer)
{
	struct flow *f = timer->data;

	http_reply(f->x, 200, "text/plain", "late", 4);
	uv_close((uv_handle_t *)timer, on_timer_closed);
}

static void later(struct http_exchange *x)
{
	struct flow *f = xcalloc(1, sizeof(*f));

	*f = (struct flow){ .site = site_of(x), .x = x };
	uv_timer_init(&f->site->loop, &f->timer);
	f->timer.data = f;
	x->data = f;
	x->on_gone = on_sip_gone;
	uv_timer_start(&f->timer, on_later, 10, 0);
}

/* GET /hold: the loop stands still until the test lets it go on. */
static void hold(struct http_exchange *x)
{
	struct site *s = site_of(x);

	s->held = 1;
	while (!s->go_on)
		sched_yield();
	http_reply(x, 200, "text/plain", "", 0);
}

/* GET /mark: the how-manieth request this is. */
static void mark(struct http_exchange *x)
{
	site_of(x)->marked = site_of(x)->requests;
	http_reply(x, 200, "text/plain", "", 0);
}

static void big(struct http_exchange *x)
{
	http_reply(x, 200, "text/plain", page, sizeof(page));
}

/* GET /sizes: what the server holds for others. */
static void sizes(struct http_exchange *x)
{
	struct http_server *server = http_exchange_server(x);
	char text[64];

	snprintf(text, sizeof(text), "ahead %zu bodies %zu!", server->ahead, server->bodies);
	http_reply(x, 200, "text/plain", text, strlen(text));
}

static void on_request(struct http_exchange *x)
{
	static const struct {
		const char *path;
		http_fn run;
	} routes[] = {
		{ "/json", json },
		{ "/stream", stream },
		{ "/echo", echo },
		{ "/sip", sip },
		{ "/stuck", stuck },
		{ "/page", big },
		{ "/sizes", sizes },
		{ "/later", later },
		{ "/hold", hold },
		{ "/mark", mark },
		{ "/hang", hang },
		{ "/sse", sse },
	};

	site_of(x)->requests++;
	if (x->upgrade && strcmp(x->upgrade, "echo") == 0) {
		upgrade(x);
		return;
	}
	if (x->upgrade && strcmp(x->upgrade, "websocket") == 0) {
		accept_socket(x);
		return;
	}
	for (size_t i = 0; i < array_len(routes); i++)
		if (strcmp(x->path, routes[i].path) == 0) {
			routes[i].run(x);
			return;
		}
	if (site_of(x)->collect_all)
		echo(x);
	else
		http_reply(x, 404, "text/plain", "no", 2);
}

/* ---- the thread ---- */

static void on_site_closed(struct http_server *server)
{
	struct site *s = server->data;

	s->closed = 1;
}

static void on_stop(uv_async_t *async)
{
	struct site *s = async->data;

	uv_close((uv_handle_t *)async, NULL);
	http_server_close(&s->server, s->grace_ms, on_site_closed);
}

static void *site_run(void *arg)
{
	struct site *s = arg;

	uv_run(&s->loop, UV_RUN_DEFAULT);
	s->loop_left = uv_loop_close(&s->loop);
	return NULL;
}

static void site_open(struct site *s, const struct http_limits *limits)
{
	struct err e;

	*s = (struct site){ .loop_left = -1 };
	memset(page, 'x', sizeof(page));
	CHECK(uv_loop_init(&s->loop) == 0);
	CHECK_OK(http_server_open(&s->server, &s->loop, "127.0.0.1:0", limits, on_request, &e),
		 &e);
	s->server.data = s;
	CHECK(uv_async_init(&s->loop, &s->stop, on_stop) == 0);
	s->stop.data = s;
	CHECK(pthread_create(&s->thread, NULL, site_run, s) == 0);
}

/* Every test ends so: nothing may be left on the loop. */
static void site_close(struct site *s)
{
	uv_async_send(&s->stop);
	pthread_join(s->thread, NULL);
	CHECK_INT(s->closed, 1);
	CHECK_INT(s->loop_left, 0);
}

/* ---- the client ---- */

static inline int dial(const struct site *s)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)http_server_port(&s->server)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 5 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	CHECK(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	return fd;
}

static void say(int fd, const void *data, size_t len)
{
	for (const char *at = data; len > 0;) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0)
			return; /* refused meanwhile: the answer tells */
		at += n;
		len -= (size_t)n;
	}
}

#define SAY(fd, text) say((fd), (text), sizeof(text) - 1)

/* Read on until the text holds `until`, or (NULL) to the end. False: neither came. */
static inline bool hear(int fd, struct buf *in, const char *until)
{
	char piece[16 * 1024];

	while (!until || !memmem(buf_str(in), in->len, until, strlen(until))) {
		ssize_t n = recv(fd, piece, sizeof(piece), 0);

		if (n <= 0)
			return !until && n == 0;
		buf_add(in, piece, (size_t)n);
	}
	return true;
}

static inline bool wait_for(atomic_int *value, int want)
{
	for (int i = 0; i < 3000 && *value != want; i++)
		usleep(10000);
	return *value == want;
}

static inline uint64_t hear_all(int fd, uint64_t want)
{
	static char piece[256 * 1024];
	uint64_t got = 0;
	ssize_t n;

	while (got < want && (n = recv(fd, piece, sizeof(piece), 0)) > 0)
		got += (uint64_t)n;
	return got;
}

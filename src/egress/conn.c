#include "egress/conn.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/dns.h"
#include "egress/first-line.h"
#include "egress/hello.h"
#include "egress/http-filter.h"
#include "egress/leaf-cert.h"
#include "egress/nameserver.h"
#include "lib/log.h"
#include "lib/phase.h"
#include "lib/str.h"
#include "lib/time.h"

#define FIRST_WAIT_MS 10000
/* It is decided with what one read brings. */
#define FIRST_MAX     (HELLO_MAX + TLS_STREAM_READ_SIZE)
#define RAW_WAIT_MS   50 /* then it may be a client that waits for the server's first word */
#define DIAL_MS       10000
#define IDLE_MS       (15 * 60 * 1000)
#define LINGER_MS     10000
#define NAMES_IDLE_MS 5000
#define WAITING_MAX   (512UL * 1024)
#define DIALS_BURST   200
#define DIALS_RATE    50 /* a second */
#define PORT_NAMES    53
#define CONTENT_HELLO 22 /* TLS's word for a handshake */

/* A fatal alert, "access denied": what a TLS client can show its user. */
static const char tls_denied[] = { 21, 3, 3, 0, 2, 2, 49 };

static const char *const phase_names[CONN_PHASE_COUNT] = {
	[CONN_FIRST] = "first",
	[CONN_RESOLVING] = "resolving",
	[CONN_DIALLING] = "dialling",
	[CONN_UP] = "up",
	[CONN_LINGERING] = "lingering",
	[CONN_CLOSED] = "closed",
};

#define ENDS (PHASE_BIT(CONN_LINGERING) | PHASE_BIT(CONN_CLOSED))

static const uint32_t next_phases[CONN_PHASE_COUNT] = {
	[CONN_FIRST] = PHASE_BIT(CONN_RESOLVING) | ENDS,
	[CONN_RESOLVING] = PHASE_BIT(CONN_DIALLING) | ENDS,
	[CONN_DIALLING] = PHASE_BIT(CONN_DIALLING) | PHASE_BIT(CONN_UP) | ENDS, /* next address */
	[CONN_UP] = ENDS,
	[CONN_LINGERING] = ENDS, /* its end may be said twice */
	[CONN_CLOSED] = 0,
};

static const struct phase_table phases = { "an egress connection", phase_names, next_phases,
					   CONN_PHASE_COUNT };

static bool move_to(struct conn *c, enum conn_phase phase)
{
	return phase_move(&phases, &c->phase, phase);
}

static void on_handle_closed(struct conn *c)
{
	if (--c->handles > 0)
		return;
	http_filter_free(c->web);
	SSL_free(c->client.ssl);
	SSL_free(c->server.ssl);
	buf_done(&c->first);
	buf_done(&c->waiting);
	c->egress->conn_count--;
	free(c);
}

static void on_timer_closed(uv_handle_t *handle)
{
	on_handle_closed(handle->data);
}

static void on_side_closed(uv_handle_t *handle)
{
	const struct tls_stream *s = handle->data;

	on_handle_closed(s->data);
}

static void close_client(struct conn *c, void (*how)(struct tls_stream *, uv_close_cb))
{
	if (c->phase == CONN_CLOSED || !move_to(c, CONN_CLOSED))
		return;
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	c->box->conn_count--;
	c->box = NULL;
	resolve_cancel(&c->ask);
	uv_close((uv_handle_t *)&c->timer, on_timer_closed);
	how(&c->client, on_side_closed);
	tls_stream_close(&c->server, on_side_closed);
}

void conn_close(struct conn *c)
{
	close_client(c, tls_stream_close);
}

static void on_deadline(uv_timer_t *timer);

static void wait_until(struct conn *c, uint64_t ms)
{
	if (c->box)
		uv_timer_start(&c->timer, on_deadline, ms, 0);
}

void conn_finish(struct conn *c)
{
	if (c->phase == CONN_CLOSED || !move_to(c, CONN_LINGERING))
		return;
	resolve_cancel(&c->ask); /* else its server would be dialled all the same */
	tls_stream_end(&c->client);
	/* what was sent and not read would undo what we said */
	tls_stream_pause(&c->client, false);
	tls_stream_close(&c->server, on_side_closed);
	wait_until(c, LINGER_MS);
	if (tls_stream_backlog(&c->client) == 0 && c->client.ended)
		conn_close(c);
}

void conn_refuse(struct conn *c, const char *kind, const char *name, const char *rule)
{
	const struct refusal r = { kind, name, rule, c->port };

	if (!c->box)
		return;
	egress_refuse(c->egress, c->box, &r);
	if (c->kind != CONN_WEB && c->first.len == 0)
		return conn_close(c);
	if (c->web && http_filter_is_inside_answer(c->web))
		return close_client(c, tls_stream_reset); /* a plain end would make it whole */
	if (c->tls && !c->opened)
		conn_to_client(c, tls_denied, sizeof(tls_denied));
	else if (c->kind == CONN_WEB && (!c->tls || c->client.ready))
		http_filter_say_refused(c, kind, name, rule);
	conn_finish(c);
}

/* Allowed, and yet it does not come about: no refusal of ours. */
static void conn_fail(struct conn *c, const char *why)
{
	if (c->kind == CONN_WEB && !c->tls)
		http_filter_say_unreachable(c, why);
	conn_finish(c);
}

void conn_flow(struct conn *c)
{
	bool up = c->phase == CONN_UP;

	if (!conn_is_open(c))
		return;
	tls_stream_pause(&c->client,
			 (up && tls_stream_backlog(&c->server) > TLS_STREAM_BACKLOG_MAX) ||
				 c->waiting.len > TLS_STREAM_BACKLOG_MAX / 4 ||
				 (c->kind == CONN_NAMES && tls_stream_backlog(&c->client) > 0) ||
				 (c->web && http_filter_is_busy(c->web)));
	if (c->phase == CONN_UP)
		tls_stream_pause(&c->server,
				 tls_stream_backlog(&c->client) > TLS_STREAM_BACKLOG_MAX);
}

void conn_to_client(struct conn *c, const char *data, size_t len)
{
	if (!c->box)
		return;
	if (c->web)
		http_filter_sent(c->web, data, len);
	tls_stream_write(&c->client, data, len);
	conn_flow(c);
}

void conn_to_server(struct conn *c, const char *data, size_t len)
{
	struct box *b = c->box;
	uint64_t max;

	if (!conn_is_open(c))
		return;
	max = b->network.max_bytes_out;
	if (max && (b->use.bytes_out > max || len > max - b->use.bytes_out))
		return conn_refuse(c, "max_bytes_out", c->name, "max_bytes_out");
	b->use.bytes_out += len;
	if (c->phase == CONN_UP)
		tls_stream_write(&c->server, data, len);
	else
		buf_add(&c->waiting, data, len);
	conn_flow(c);
}

/* ---- what came is passed on ---- */

static void on_server_data(struct tls_stream *s, const char *data, size_t len)
{
	struct conn *c = s->data;

	c->box->use.bytes_in += len;
	wait_until(c, IDLE_MS);
	if (c->kind == CONN_UNKNOWN && c->first.len == 0)
		c->kind = CONN_RAW; /* no server of HTTP or TLS speaks first */
	if (c->web)
		http_filter_from_server(c->web, data, len);
	else
		conn_to_client(c, data, len);
}

static void on_server_end(struct tls_stream *s)
{
	struct conn *c = s->data;

	if (c->web)
		http_filter_server_ended(c->web);
	if (!c->box)
		return;
	tls_stream_end(&c->client);
	if (c->client.ended || c->web)
		conn_finish(c);
}

static void on_server_broken(struct tls_stream *s, const char *why)
{
	struct conn *c = s->data;

	if (c->phase == CONN_DIALLING && c->opened) {
		log_event(LOG_INFO, "TLS to the server failed", "name", c->name, "why", why, NULL);
		return conn_refuse(c, "server_tls", c->name, why);
	}
	if (c->web)
		http_filter_server_ended(c->web);
	conn_finish(c);
}

static void answer_questions(struct conn *c);

static void on_drained(struct tls_stream *s)
{
	struct conn *c = s->data;

	if (c->kind == CONN_NAMES && conn_is_open(c))
		answer_questions(c);
	if (c->phase != CONN_LINGERING)
		return conn_flow(c);
	if (tls_stream_backlog(&c->client) == 0 && c->client.ended)
		conn_close(c);
}

/* The server side is there: what waited goes first. */
static void be_up(struct conn *c)
{
	if (!move_to(c, CONN_UP))
		return conn_close(c);
	wait_until(c, IDLE_MS);
	if (c->waiting.len > 0)
		tls_stream_write(&c->server, c->waiting.data, c->waiting.len);
	buf_done(&c->waiting);
	c->waiting = buf_make(WAITING_MAX);
	if (!c->box)
		return;
	tls_stream_begin(&c->server);
	if (c->client.ended && !c->opened)
		tls_stream_end(&c->server);
	conn_flow(c);
}

/* The server has shown who it is: only now the client gets our certificate for it. */
static void on_server_ready(struct tls_stream *s)
{
	struct conn *c = s->data;
	struct err e;
	SSL *ssl;

	if (leaf_cert_serve(c->box, c->name, &ssl, &e) < 0) {
		log_event(LOG_ERROR, "certificate for a sandbox cannot be made", "sandbox",
			  c->box->sandbox, "why", e.msg, NULL);
		return conn_refuse(c, "server_tls", c->name, "no certificate can be made");
	}
	be_up(c);
	if (!c->box)
		return;
	tls_stream_tls(&c->client, ssl);
	if (c->box)
		tls_stream_feed(&c->client, c->first.data, c->first.len);
	if (c->box)
		tls_stream_pause(&c->client, false);
}

static const struct tls_stream_events server_events = {
	.on_ready = on_server_ready,
	.on_data = on_server_data,
	.on_end = on_server_end,
	.on_broken = on_server_broken,
	.on_drained = on_drained,
};

/* ---- dialling ---- */

static void dial_next(struct conn *c);

/* That address did not answer. */
static void on_dead_closed(uv_handle_t *handle)
{
	struct tls_stream *s = handle->data;
	struct conn *c = s->data;

	if (conn_is_open(c)) {
		c->handles--;
		c->tried++;
		*s = (struct tls_stream){ .events = s->events,
					  .data = c,
					  .read_buffer = s->read_buffer };
		return dial_next(c);
	}
	on_handle_closed(c);
}

static void on_connected(uv_connect_t *req, int status)
{
	struct conn *c = req->data;
	struct err e;
	SSL *ssl;

	if (!conn_is_open(c))
		return;
	if (status < 0)
		return tls_stream_close(&c->server, on_dead_closed); /* the next address */
	uv_tcp_nodelay(&c->server.tcp, 1);
	if (!c->opened)
		return be_up(c);
	if (upstream_tls_dial(&c->egress->trust, c->name, &ssl, &e) < 0) {
		log_event(LOG_ERROR, "TLS to the server cannot begin", "name", c->name, "why",
			  e.msg, NULL);
		return conn_close(c);
	}
	tls_stream_begin(&c->server);
	tls_stream_tls(&c->server, ssl);
}

/* An address is fit to be dialled if it is public and not this host's, or if a rule names it. */
static bool fit(const struct conn *c, uint32_t address)
{
	struct in_addr in = { .s_addr = htonl(address) };
	char text[INET_ADDRSTRLEN];

	return (!network_address_is_inner(address) &&
		!host_addresses_has(&c->egress->own, address, time_mono_ms())) ||
	       network_rule_allows(&c->box->network, inet_ntop(AF_INET, &in, text, sizeof(text)),
				   c->port);
}

static void dial_next(struct conn *c)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(c->port) };
	struct in_addr last = { 0 };
	char text[INET_ADDRSTRLEN];

	for (; c->tried < c->found.count; c->tried++) {
		last.s_addr = htonl(c->found.addresses[c->tried]);
		if (!fit(c, c->found.addresses[c->tried]))
			continue;
		if (!move_to(c, CONN_DIALLING))
			return conn_close(c);
		to.sin_addr = last;
		tls_stream_init(&c->server, &c->egress->loop);
		c->handles++;
		c->connect.data = c;
		wait_until(c, DIAL_MS);
		if (uv_tcp_connect(&c->connect, &c->server.tcp, (struct sockaddr *)&to,
				   on_connected) < 0)
			conn_fail(c, "no connection can be made");
		return;
	}
	if (c->phase == CONN_DIALLING)
		return conn_fail(c, "it does not answer");
	if (c->found.count == 0)
		return conn_fail(c, "it has no address");
	conn_refuse(c, "inner_address", c->name, inet_ntop(AF_INET, &last, text, sizeof(text)));
}

static void on_resolved(struct resolve_ask *ask, const struct resolved *r)
{
	struct conn *c = container_of(ask, struct conn, ask);

	c->found = *r;
	dial_next(c);
}

void conn_dial(struct conn *c)
{
	const struct network *n = &c->box->network;
	struct err e;

	if (n->max_connections && c->box->use.connections >= n->max_connections)
		return conn_refuse(c, "max_connections", c->name, "max_connections");
	if (!tokens_take(&c->box->dials, DIALS_BURST, DIALS_RATE, time_mono_ms()))
		return conn_refuse(c, "connection_rate", c->name, "50 connections a second");
	if (!move_to(c, CONN_RESOLVING))
		return conn_close(c);
	c->box->use.connections++;
	wait_until(c, DIAL_MS);
	tls_stream_pause(&c->client, true);
	if (c->address) {
		c->found = (struct resolved){ .addresses = { c->address }, .count = 1 };
		return dial_next(c);
	}
	c->ask.done = on_resolved;
	if (resolve(&c->egress->resolver, c->box->address, c->name, &c->ask, &e) < 0)
		conn_fail(c, e.msg);
}

/* ---- the first bytes ---- */

/* Empty lines before a request: servers skip them, so they decide nothing. */
static size_t empty_lines(const struct buf *first)
{
	size_t i = 0;

	while (i < first->len && (first->data[i] == '\r' || first->data[i] == '\n'))
		i++;
	return i;
}

/* A rule, a limit, or a secret that goes there needs the requests to be seen. */
bool conn_must_see_requests(const struct conn *c)
{
	size_t i = 0;

	return network_wants_http(&c->box->network, c->name, c->port) ||
	       c->box->network.max_requests || box_secret(c->box, c->name, &i);
}

static void be_raw(struct conn *c)
{
	c->kind = CONN_RAW;
	conn_to_server(c, buf_str(&c->first) + c->first_sent, c->first.len - c->first_sent);
	if (c->phase == CONN_FIRST)
		conn_dial(c);
}

/*
 * It goes on, since a client may wait for the answer to half a line, and is looked at until its
 * end: as much of it is kept as may be the beginning of a version.
 */
static void send_line(struct conn *c)
{
	size_t keep = c->first.len < FIRST_LINE_PART ? c->first.len : FIRST_LINE_PART;

	conn_to_server(c, c->first.data + c->first_sent, c->first.len - c->first_sent);
	buf_drop(&c->first, c->first.len - keep);
	c->first_sent = keep;
	if (c->phase == CONN_FIRST)
		conn_dial(c);
}

/* Where the bytes need not be looked at, the server may have the first word. */
static bool may_be_raw(const struct conn *c)
{
	return c->port != PORT_HTTP && c->port != PORT_HTTPS && !conn_must_see_requests(c);
}

/*
 * The client waits, maybe for the server, which is therefore dialled. What the client says is
 * looked at all the same when it comes, however late: to wait is no way around SNI and Host.
 */
static void let_server_speak(struct conn *c)
{
	if (c->first.len > 0 && empty_lines(&c->first) == c->first.len) {
		conn_to_server(c, buf_str(&c->first), c->first.len);
		buf_clear(&c->first);
	}
	if (c->phase == CONN_FIRST)
		conn_dial(c);
}

static void take_hello(struct conn *c)
{
	char name[HELLO_NAME_SIZE];
	struct bytes data = { (const uint8_t *)c->first.data, c->first.len };
	enum hello got = hello_read(data, name);

	c->tls = true;
	if (got == HELLO_MORE)
		return;
	if (got == HELLO_BAD)
		return conn_refuse(c, "not_tls", c->name, "a ClientHello in one piece");
	if (!c->address && name[0] && strcmp(name, c->name) != 0)
		return conn_refuse(c, "sni", name, c->name);
	if (!conn_must_see_requests(c))
		return be_raw(c);
	if (c->address)
		return conn_refuse(c, "not_http", c->name, "requests in TLS need a name");
	c->opened = true;
	c->kind = CONN_WEB;
	c->web = http_filter_new(c);
	conn_dial(c);
}

/* Neither TLS nor HTTP: where we need not look into it, a rule's port is enough. */
static void take_other(struct conn *c)
{
	if (!may_be_raw(c))
		return conn_refuse(c, "not_http", c->name, "HTTP or TLS");
	be_raw(c);
}

static void take_web(struct conn *c)
{
	struct buf first = c->first;

	size_t i = 0;

	c->kind = CONN_WEB;
	if (box_secret(c->box, c->name, &i)) /* any machine on the way could read it */
		return conn_refuse(c, "plain_http", c->name, "a secret goes only through TLS");
	c->web = http_filter_new(c);
	c->first = buf_make(FIRST_MAX);
	http_filter_from_client(c->web, first.data, first.len);
	buf_done(&first);
	if (c->phase == CONN_FIRST) /* its rest may take longer than a raw client's word */
		wait_until(c, FIRST_WAIT_MS);
}

static void take_first(struct conn *c, const char *data, size_t len)
{
	size_t skip;

	buf_add(&c->first, data, len);
	if (buf_overflowed(&c->first))
		return conn_refuse(c, "not_tls", c->name, "a first message of 80 KiB");
	if (c->first.data[0] == CONTENT_HELLO && !c->first_sent)
		return take_hello(c);
	skip = c->first_sent ? 0 : empty_lines(&c->first);
	switch (first_line_look(c->first.data + skip, c->first.len - skip, c->first_sent > 0)) {
	case LOOK_HTTP:
		if (c->first_sent)
			return conn_refuse(c, "not_http", c->name, "a request in pieces");
		return take_web(c);
	case LOOK_METHOD:
		return;
	case LOOK_LINE:
		return may_be_raw(c) ? send_line(c) : take_other(c);
	case LOOK_OTHER:
		return take_other(c);
	}
}

/* ---- DNS over TCP: each message behind its length ---- */

/* While answers wait to be read there are no more: what a guest asks and does not read, we hold. */
static void answer_questions(struct conn *c)
{
	cleanup(buf_done) struct buf out = buf_make(2 + 2 * DNS_MESSAGE_MAX);
	struct bytes message;
	size_t size;

	while (c->box && c->first.len >= 2 && tls_stream_backlog(&c->client) == 0) {
		size = (size_t)(uint8_t)c->first.data[0] << 8 | (uint8_t)c->first.data[1];
		if (size > DNS_MESSAGE_MAX || buf_overflowed(&c->first))
			return conn_close(c);
		if (c->first.len - 2 < size)
			return;
		message = (struct bytes){ (const uint8_t *)c->first.data + 2, size };
		buf_clear(&out);
		buf_add(&out, "\0\0", 2);
		if (!nameserver_answer(c->egress, c->box, message, &out))
			return conn_close(c);
		out.data[0] = (char)((out.len - 2) >> 8);
		out.data[1] = (char)((out.len - 2) & 0xff);
		buf_drop(&c->first, size + 2);
		conn_to_client(c, out.data, out.len);
	}
}

static void take_questions(struct conn *c, const char *data, size_t len)
{
	buf_add(&c->first, data, len);
	answer_questions(c);
}

/* ---- the client's side ---- */

static void on_client_data(struct tls_stream *s, const char *data, size_t len)
{
	struct conn *c = s->data;

	if (!conn_is_open(c))
		return;
	if (c->phase == CONN_UP)
		wait_until(c, IDLE_MS);
	if (c->kind == CONN_NAMES)
		take_questions(c, data, len);
	else if (c->kind == CONN_UNKNOWN)
		take_first(c, data, len);
	else if (c->web)
		http_filter_from_client(c->web, data, len);
	else
		conn_to_server(c, data, len);
}

static void on_client_end(struct tls_stream *s)
{
	struct conn *c = s->data;

	if (c->phase == CONN_FIRST ||
	    (c->phase == CONN_LINGERING && tls_stream_backlog(s) == 0))
		return conn_close(c);
	if (c->phase != CONN_UP) /* the server is told when it is there */
		return;
	if (c->server.ended)
		return conn_finish(c);
	if (!c->opened) /* a TLS client that says goodbye may still be answered */
		tls_stream_end(&c->server);
}

static void on_client_broken(struct tls_stream *s, const char *why)
{
	struct conn *c = s->data;

	/* It did not like our certificate: it trusts only its own list, or one key. */
	if (c->opened && s->ssl && !s->ready)
		egress_refuse(c->egress, c->box,
			      &(struct refusal){ "pinned", c->name, why, c->port });
	conn_close(c);
}

static void on_client_ready(struct tls_stream *s)
{
	(void)s;
}

static const struct tls_stream_events client_events = {
	.on_ready = on_client_ready,
	.on_data = on_client_data,
	.on_end = on_client_end,
	.on_broken = on_client_broken,
	.on_drained = on_drained,
};

static void on_deadline(uv_timer_t *timer)
{
	struct conn *c = timer->data;

	if (c->phase == CONN_FIRST && c->kind == CONN_UNKNOWN && may_be_raw(c))
		return let_server_speak(c);
	if (c->phase == CONN_DIALLING)
		return conn_fail(c, "it does not answer");
	conn_close(c);
}

/* ---- begin, and review ---- */

/*
 * How many a box may have: the fewer are left, the fewer, so that however many boxes take
 * what they can get, the next one still finds some.
 */
static size_t box_share(const struct conn *c)
{
	size_t share = (EGRESS_CONNECTIONS_MAX - c->egress->conn_count) / BOX_SHARE;

	return share < BOX_CONNECTIONS_MAX ? share : BOX_CONNECTIONS_MAX;
}

/* Before a byte is read: may this box have a connection there? */
static bool admit(struct conn *c)
{
	const struct network *n = &c->box->network;

	if (c->box->conn_count > box_share(c)) {
		conn_refuse(c, "open_connections", c->name, "too many at once");
		return false;
	}
	if (c->kind == CONN_NAMES)
		return true;
	if (!network_allows_port(n, c->name, c->port)) {
		conn_refuse(c,
			    c->address                        ? "address"
			    : network_allows_name(n, c->name) ? "port"
							      : "name",
			    c->name, n->mode == NETWORK_OPEN ? "only what is public" : "no rule");
		return false;
	}
	return true;
}

static void name_of(struct conn *c, uint32_t to)
{
	struct in_addr in = { .s_addr = htonl(to) };
	const char *name = box_name_of(c->box, to);

	if (name && box_address_is_name(to)) {
		(void)!str_copy(c->name, sizeof(c->name), name); /* they are no longer */
		return;
	}
	c->address = to;
	inet_ntop(AF_INET, &in, c->name, sizeof(c->name));
}

static struct conn *conn_new(struct egress *g, struct box *b)
{
	struct conn *c = xcalloc(1, sizeof(*c));

	c->egress = g;
	c->box = b;
	c->next = b->conns;
	c->at = &b->conns;
	if (c->next)
		c->next->at = &c->next;
	b->conns = c;
	b->conn_count++;
	g->conn_count++;
	c->first = buf_make(FIRST_MAX);
	c->waiting = buf_make(WAITING_MAX);
	c->client.events = &client_events;
	c->server.events = &server_events;
	c->client.data = c->server.data = c;
	c->client.read_buffer = c->server.read_buffer = g->read_buffer;
	uv_timer_init(&g->loop, &c->timer);
	c->timer.data = c;
	c->handles = 2;
	return c;
}

void conn_begin(struct egress *g, int fd, uint32_t from, uint32_t to, uint16_t port)
{
	struct box *b = boxes_at(&g->boxes, from);
	struct conn *c;
	struct err e;

	if (!b || g->conn_count >= EGRESS_CONNECTIONS_MAX) {
		close(fd);
		return;
	}
	c = conn_new(g, b);
	c->port = port;
	c->kind = port == PORT_NAMES ? CONN_NAMES : CONN_UNKNOWN;
	name_of(c, to);
	if (tls_stream_open(&c->client, &g->loop, fd, &e) < 0)
		return conn_close(c);
	uv_tcp_nodelay(&c->client.tcp, 1);
	if (!admit(c))
		return;
	wait_until(c, c->kind == CONN_NAMES ? NAMES_IDLE_MS
		      : may_be_raw(c)       ? RAW_WAIT_MS
					    : FIRST_WAIT_MS);
	tls_stream_begin(&c->client);
}

/* Whether it could begin now as it once did. */
static bool may_stay(const struct conn *c)
{
	if (c->kind == CONN_NAMES)
		return true;
	return network_allows_port(&c->box->network, c->name, c->port) &&
	       !((c->kind == CONN_RAW || (c->kind == CONN_UNKNOWN && c->phase != CONN_FIRST)) &&
		 conn_must_see_requests(c)) &&
	       (!c->web || http_filter_may_stay(c->web));
}

void conns_review(struct box *b, bool all)
{
	struct conn *next;

	for (struct conn *c = b->conns; c; c = next) {
		next = c->next;
		if (all || !may_stay(c))
			conn_close(c);
	}
}

#include "egress/http-filter.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egress/answer-watch.h"
#include "egress/redact.h"
#include "http/parse.h"
#include "lib/json.h"
#include "lib/str.h"

#define HEAD_OUT_MAX \
	(HTTP_HEAD_MAX + NETWORK_HOST_SIZE + 32UL + \
	 NETWORK_SECRETS_MAX * (EGRESS_VALUE_SIZE + 128UL))
#define AHEAD_MAX (512UL * 1024)
#define ASKED_MAX 4096

struct http_filter {
	struct conn *conn;
	struct http_parser request;
	bool in_body;
	bool had_body;    /* one went out, and more requests may follow it */
	bool last;        /* no request follows this one: see ends_here() */
	bool behind;      /* the one before it had no answer yet: what comes next is not its own */
	bool telling;     /* the answer of the last one is to say so */
	bool answered;    /* something came back since */
	struct buf asked; /* lines, "METHOD target", each once; what is too much overflows */
	bool upgrading;   /* the server has not yet said whether it will */
	bool raw;         /* it did: bytes both ways */
	struct answer_watch watch;

	/* Where a secret goes to this host. */
	bool guarded;
	struct redact redact;
	char *kept[2 * NETWORK_SECRETS_MAX]; /* what is taken out: a policy may go before we do */
	size_t kept_count;
	struct buf ahead; /* of the client, until the answer is through */
	bool answering;
	bool answer_in_body, answer_chunked;
	struct http_parser answer;
	struct buf out;
};

static void on_answer_body(struct http_parser *p, const char *data, size_t len);

/* "Bearer abc" must not come back as "abc" either; NULL if there is no word before it. */
static const char *bare(const char *value)
{
	const char *blank = strrchr(value, ' ');

	return blank && blank[1] ? blank + 1 : NULL;
}

static void keep(struct http_filter *w, const char *text)
{
	if (!text)
		return;
	w->kept[w->kept_count] = xstrdup(text);
	redact_add(&w->redact, w->kept[w->kept_count++]);
}

static bool has_current_secrets(const struct http_filter *w)
{
	const struct egress_secret *s;
	size_t i = 0, at = 0;

	while ((s = box_secret(w->conn->box, w->conn->name, &i))) {
		if (at == w->kept_count || strcmp(w->kept[at], s->value) != 0)
			return false;
		at += bare(s->value) ? 2 : 1;
	}
	return at == w->kept_count;
}

/*
 * Of answers that are not read the end is not known: all that was ever asked here counts, and
 * what is too much to remember was not allowed.
 */
static bool may_still_ask(const struct http_filter *w)
{
	const struct conn *c = w->conn;
	char asked[ASKED_MAX + 1] = "", *rest = asked, *method, *target;

	if (buf_overflowed(&w->asked))
		return false;
	if (w->asked.len > 0)
		memcpy(asked, w->asked.data, w->asked.len);
	while ((method = strtok_r(NULL, " \n", &rest)) && (target = strtok_r(NULL, "\n", &rest)))
		if (!network_allows_request(&c->box->network, c->name, c->port, method, target))
			return false;
	return true;
}

bool http_filter_may_stay(const struct http_filter *w)
{
	return has_current_secrets(w) && may_still_ask(w) &&
	       !(w->had_body && conn_must_see_requests(w->conn));
}

struct http_filter *http_filter_new(struct conn *c)
{
	struct http_filter *w = xcalloc(1, sizeof(*w));
	const struct egress_secret *s;
	size_t i = 0;

	w->conn = c;
	answer_watch_init(&w->watch);
	http_parser_init(&w->request, HTTP_HEAD_MAX);
	redact_init(&w->redact);
	w->ahead = buf_make(AHEAD_MAX);
	w->asked = buf_make(ASKED_MAX);
	w->out = buf_make(2 * AHEAD_MAX);
	while ((s = box_secret(c->box, c->name, &i))) {
		w->guarded = true;
		keep(w, s->value);
		keep(w, bare(s->value));
	}
	http_parser_init_reply(&w->answer, false);
	w->answer.any_end = true;
	w->answer.on_body = on_answer_body;
	return w;
}

void http_filter_free(struct http_filter *w)
{
	if (!w)
		return;
	answer_watch_done(&w->watch);
	http_parser_done(&w->request);
	http_parser_done(&w->answer);
	redact_done(&w->redact);
	for (size_t i = 0; i < w->kept_count; i++) {
		explicit_bzero(w->kept[i], strlen(w->kept[i]));
		free(w->kept[i]);
	}
	buf_done(&w->ahead);
	buf_done(&w->asked);
	buf_done(&w->out);
	free(w);
}

bool http_filter_is_busy(const struct http_filter *w)
{
	return w->upgrading || (w->guarded && w->answering && !w->in_body) ||
	       (w->last && w->ahead.len > 0);
}

void http_filter_sent(struct http_filter *w, const char *data, size_t len)
{
	answer_watch_sent(&w->watch, data, len);
}

bool http_filter_is_inside_answer(const struct http_filter *w)
{
	return answer_watch_is_inside(&w->watch);
}

/* ---- answers of our own ---- */

static void say(struct conn *c, const char *status, const char *code, const char *message)
{
	cleanup(buf_done) struct buf text = buf_make(4096);
	cleanup(buf_done) struct buf body = buf_make(2048);

	buf_adds(&body, "{");
	json_str(&body, "code", code);
	json_str(&body, "message", message);
	buf_adds(&body, "}\n");
	buf_addf(&text,
		 "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		 "Connection: close\r\nVia: 1.1 berth-egress\r\n\r\n%s",
		 status, body.len, buf_str(&body));
	conn_to_client(c, text.data, text.len);
}

void http_filter_say_refused(struct conn *c, const char *kind, const char *name, const char *rule)
{
	char message[640];

	snprintf(message, sizeof(message),
		 "this sandbox's network policy does not allow it: %s %.250s (%.250s)", kind, name,
		 rule);
	say(c, str_starts(kind, "max_") ? "429 Too Many Requests" : "403 Forbidden", kind, message);
}

void http_filter_say_unreachable(struct conn *c, const char *why)
{
	char message[400];

	snprintf(message, sizeof(message), "%s cannot be reached: %.100s", c->name, why);
	say(c, "502 Bad Gateway", "unreachable", message);
}

/* ---- requests ---- */

/* The name of a Host header is this connection's; a port behind it must be, too. */
static bool host_fits(const struct conn *c, const char *host)
{
	size_t len = strcspn(host, ":");
	uint64_t port;
	struct err ignored;

	if (len != strlen(c->name) || strncasecmp(host, c->name, len) != 0)
		return false;
	return !host[len] || (str_u64(host + len + 1, &port, &ignored) == 0 && port == c->port);
}

/*
 * Only to a WebSocket: what else a connection could become has requests, too, and we would not
 * see them. A server may always decline, so to those it is not even said.
 */
static bool wants_upgrade(const struct http_parser *p)
{
	const char *to = http_parser_find(p, "Upgrade");

	return p->upgrade && to && strcasecmp(to, "websocket") == 0;
}

/* We read the first, and a server may agree to the second. */
static bool has_upgrades(const struct http_parser *p)
{
	const char *name, *value;
	size_t count = 0;

	for (size_t i = 0; http_parser_field(p, i, &name, &value); i++)
		count += strcasecmp(name, "Upgrade") == 0;
	return count > 1;
}

static bool has_asked(const struct http_filter *w)
{
	return w->asked.len > 0 || buf_overflowed(&w->asked);
}

static bool check_request(struct http_filter *w)
{
	struct conn *c = w->conn;
	const struct network *n = &c->box->network;
	const char *method = http_parser_method(&w->request);
	const char *target = http_parser_target(&w->request);
	const char *host = http_parser_find(&w->request, "Host");
	char what[NETWORK_HOST_SIZE];

	if (host && !host_fits(c, host))
		return conn_refuse(c, "host", host, c->name), false;
	if (!network_allows_request(n, c->name, c->port, method, target)) {
		snprintf(what, sizeof(what), "%s %.200s", method, target);
		return conn_refuse(c, "request", c->name, what), false;
	}
	if (n->max_requests && c->box->use.requests >= n->max_requests)
		return conn_refuse(c, "max_requests", c->name, "max_requests"), false;
	if (has_upgrades(&w->request))
		return conn_refuse(c, "not_http", c->name, "more than one Upgrade"), false;
	if (w->guarded && wants_upgrade(&w->request))
		return conn_refuse(c, "not_http", c->name, "an upgrade where a secret goes"), false;
	if (has_asked(w) && wants_upgrade(&w->request))
		return conn_refuse(c, "not_http", c->name, "an upgrade behind requests"), false;
	c->box->use.requests++;
	return true;
}

static bool is_ours(const struct http_filter *w, const char *name)
{
	/* What would come back in a form that cannot be searched. */
	static const char *const forms[] = { "Accept-Encoding", "TE", "Range", "If-Range" };
	const struct egress_secret *s;
	size_t i = 0;

	for (size_t k = 0; k < array_len(forms); k++)
		if (strcasecmp(name, forms[k]) == 0)
			return true;
	while ((s = box_secret(w->conn->box, w->conn->name, &i)))
		if (strcasecmp(s->header, name) == 0 &&
		    network_has_method(s->methods, http_parser_method(&w->request)) &&
		    network_has_path(s->paths, http_parser_target(&w->request)))
			return true;
	return false;
}

static void add_secrets(const struct http_filter *w, struct buf *out)
{
	const struct egress_secret *s;
	size_t i = 0;

	buf_adds(out, "Accept-Encoding: identity\r\n");
	while ((s = box_secret(w->conn->box, w->conn->name, &i)))
		if (network_has_method(s->methods, http_parser_method(&w->request)) &&
		    network_has_path(s->paths, http_parser_target(&w->request)))
			buf_addf(out, "%s: %s\r\n", s->header, s->value);
}

static bool is_of_connection(const char *name)
{
	return strcasecmp(name, "Connection") == 0 || strcasecmp(name, "Keep-Alive") == 0 ||
	       strcasecmp(name, "Proxy-Connection") == 0;
}

/* What is said of an upgrade goes only with one; and none goes to HTTP/2. */
static bool is_passed_on(const struct http_filter *w, const char *name)
{
	if (strcasecmp(name, "Upgrade") == 0)
		return wants_upgrade(&w->request);
	if (w->last && is_of_connection(name))
		return false;
	return strcasecmp(name, "HTTP2-Settings") != 0 && (!w->guarded || !is_ours(w, name));
}

/* HTTP/1.0 need not say it; then the server would choose a host, and the rule was for this one. */
static void add_host(const struct conn *c, struct buf *out)
{
	buf_addf(out, "Host: %s", c->name);
	if (c->port != (c->opened ? PORT_HTTPS : PORT_HTTP))
		buf_addf(out, ":%u", c->port);
	buf_adds(out, "\r\n");
}

/*
 * A server may answer without reading the body, and take it for its next request: one that no
 * rule allowed, and whose own body could be the next head with a secret in it. So where requests
 * must be seen, none follows one with a body, and the server is told so.
 */
static bool ends_here(const struct http_filter *w)
{
	return !w->request.whole && conn_must_see_requests(w->conn);
}

static void send_head(struct http_filter *w)
{
	cleanup(buf_done) struct buf out = buf_make(HEAD_OUT_MAX);
	const struct http_parser *p = &w->request;
	const char *name, *value;

	buf_addf(&out, "%s %s HTTP/1.%d\r\n", http_parser_method(p), http_parser_target(p),
		 http_parser_is_1_0(p) ? 0 : 1);
	if (!http_parser_find(p, "Host"))
		add_host(w->conn, &out);
	for (size_t i = 0; http_parser_field(p, i, &name, &value); i++)
		if (is_passed_on(w, name))
			buf_addf(&out, "%s: %s\r\n", name, value);
	if (w->last)
		buf_adds(&out, "Connection: close\r\n");
	if (w->guarded)
		add_secrets(w, &out);
	buf_adds(&out, "\r\n");
	conn_to_server(w->conn, out.data, out.len);
	explicit_bzero(out.data, out.len);
}

/* Where answers are read, only this one is under way. */
static void remember(struct http_filter *w)
{
	cleanup(buf_done) struct buf line = buf_make(HTTP_HEAD_MAX + 32UL);

	if (w->guarded)
		buf_clear(&w->asked);
	buf_addf(&line, "\n%s %s\n", http_parser_method(&w->request),
		 http_parser_target(&w->request));
	if (w->asked.len == 0 || !memmem(w->asked.data, w->asked.len, line.data, line.len))
		buf_add(&w->asked, line.data, line.len);
}

/* One that may pass goes on; with the first of them the server is dialled. */
static void take_head(struct http_filter *w)
{
	struct conn *c = w->conn;
	bool head_only;

	if (!check_request(w))
		return;
	w->last = ends_here(w);
	w->behind = has_asked(w) && !w->answered;
	w->telling = w->last && !w->guarded && !w->behind;
	w->answered = false;
	w->had_body = w->had_body || (!w->request.whole && !w->last);
	send_head(w);
	if (!conn_is_open(c))
		return;
	head_only = strcmp(http_parser_method(&w->request), "HEAD") == 0;
	answer_watch_asked(&w->watch, head_only);
	if (w->guarded) {
		w->answering = true;
		http_parser_next(&w->answer);
		w->answer.head_only = head_only;
	}
	remember(w);
	w->upgrading = wants_upgrade(&w->request);
	w->in_body = !w->request.whole;
	if (!w->in_body)
		http_parser_next(&w->request);
	if (c->phase == CONN_FIRST)
		conn_dial(c);
}

static bool alive(const struct http_filter *w)
{
	return conn_is_open(w->conn);
}

static void not_http(struct http_filter *w)
{
	conn_refuse(w->conn, "not_http", w->conn->name, w->request.reason);
}

static size_t take_some(struct http_filter *w, const char *data, size_t len)
{
	enum parse_result r;
	size_t used = 0;

	if (w->in_body) {
		r = http_parser_body(&w->request, data, len, &used);
		if (r == PARSE_BAD)
			return not_http(w), len;
		conn_to_server(w->conn, data, used);
		if (r == PARSE_DONE) {
			w->in_body = false;
			http_parser_next(&w->request);
		}
		return used;
	}
	r = http_parser_head(&w->request, data, len, &used);
	if (r == PARSE_BAD)
		return not_http(w), len;
	if (r == PARSE_DONE)
		take_head(w);
	return used;
}

void http_filter_from_client(struct http_filter *w, const char *data, size_t len)
{
	while (len > 0 && alive(w)) {
		size_t used;

		if (w->raw)
			return conn_to_server(w->conn, data, len);
		if (w->last && !w->in_body && w->answered && !w->guarded && !w->behind)
			return conn_finish(w->conn); /* the server was told to, and did not */
		if (http_filter_is_busy(w) || (w->last && !w->in_body)) {
			buf_add(&w->ahead, data, len);
			if (buf_overflowed(&w->ahead))
				conn_close(w->conn);
			return conn_flow(w->conn);
		}
		used = take_some(w, data, len);
		data += used;
		len -= used;
	}
	if (alive(w))
		conn_flow(w->conn);
}

/* ---- answers, where a secret went out ---- */

static void emit(struct http_filter *w, const char *data, size_t len, bool last)
{
	char size[24];

	buf_clear(&w->out);
	redact_feed(&w->redact, data, len, last, &w->out);
	if (w->answer_chunked && w->out.len > 0) {
		snprintf(size, sizeof(size), "%zx\r\n", w->out.len);
		conn_to_client(w->conn, size, strlen(size));
	}
	conn_to_client(w->conn, w->out.data, w->out.len);
	if (w->answer_chunked && w->out.len > 0)
		conn_to_client(w->conn, "\r\n", 2);
	if (w->answer_chunked && last)
		conn_to_client(w->conn, "0\r\n\r\n", 5);
}

static void on_answer_body(struct http_parser *p, const char *data, size_t len)
{
	emit(container_of(p, struct http_filter, answer), data, len, false);
}

/* What the client sent meanwhile has its turn. */
static void go_on(struct http_filter *w)
{
	struct buf ahead = w->ahead;

	w->ahead = buf_make(AHEAD_MAX);
	http_filter_from_client(w, ahead.data, ahead.len);
	buf_done(&ahead);
	conn_flow(w->conn);
}

static void answer_ended(struct http_filter *w)
{
	bool keep = w->answer.keep_alive && !(w->last && !w->in_body);

	emit(w, NULL, 0, true);
	w->answering = w->answer_in_body = w->answer_chunked = false;
	http_parser_next(&w->answer);
	if (!keep)
		return conn_finish(w->conn);
	go_on(w);
}

/* A form that cannot be searched may hide a secret that the server sent back. */
static bool readable(const struct http_parser *p)
{
	static const struct {
		const char *name, *value;
	} plain[] = { { "Content-Encoding", "identity" }, { "Transfer-Encoding", "chunked" } };
	const char *name, *value;

	for (size_t i = 0; http_parser_field(p, i, &name, &value); i++)
		for (size_t k = 0; k < array_len(plain); k++)
			if (strcasecmp(name, plain[k].name) == 0 &&
			    strcasecmp(value, plain[k].value) != 0)
				return false;
	return true;
}

static void send_answer_head(struct http_filter *w)
{
	cleanup(buf_done) struct buf head = buf_make(HTTP_HEAD_MAX * 2UL);
	const struct http_parser *p = &w->answer;
	const char *name, *value;

	buf_addf(&head, "HTTP/1.%d %d \r\n", http_parser_is_1_0(p) ? 0 : 1, http_parser_status(p));
	for (size_t i = 0; http_parser_field(p, i, &name, &value); i++)
		if (strcasecmp(name, "Trailer") != 0 && !(w->last && is_of_connection(name)))
			buf_addf(&head, "%s: %s\r\n", name, value);
	if (w->last && http_parser_status(p) >= 200)
		buf_adds(&head, "Connection: close\r\n");
	buf_adds(&head, "\r\n");
	buf_clear(&w->out);
	redact_all(&w->redact, head.data, head.len, &w->out);
	conn_to_client(w->conn, w->out.data, w->out.len);
}

static void take_answer_head(struct http_filter *w)
{
	const char *transfer = http_parser_find(&w->answer, "Transfer-Encoding");
	int status = http_parser_status(&w->answer);

	if (!readable(&w->answer))
		return conn_refuse(w->conn, "unreadable", w->conn->name, "an encoded answer");
	send_answer_head(w);
	if (!alive(w))
		return;
	if (status >= 100 && status < 200)
		return http_parser_next(&w->answer); /* the real one follows */
	w->answer_chunked = !w->answer.whole && transfer;
	w->answer_in_body = !w->answer.whole;
	if (w->answer.whole)
		answer_ended(w);
}

/* Until the server agrees it is HTTP, and whatever the client sends next is a request. */
static void take_upgrade(struct http_filter *w, const char *data, size_t len)
{
	enum parse_result r;
	size_t used;
	int status;

	while (len > 0 && alive(w) && w->upgrading) {
		r = http_parser_head(&w->answer, data, len, &used);
		if (r == PARSE_BAD)
			return conn_refuse(w->conn, "unreadable", w->conn->name, w->answer.reason);
		status = http_parser_status(&w->answer);
		conn_to_client(w->conn, data, used);
		data += used;
		len -= used;
		if (r != PARSE_DONE)
			return;
		w->upgrading = status < 200 && status != 101; /* the real one follows */
		w->raw = status == 101;
		http_parser_next(&w->answer);
	}
	if (len > 0)
		conn_to_client(w->conn, data, len);
	if (alive(w) && !w->upgrading)
		go_on(w);
}

/* The client is told that no request follows: a server may close and not say so. */
static void take_last_head(struct http_filter *w, const char *data, size_t len)
{
	while (len > 0 && alive(w) && w->telling) {
		size_t used;
		enum parse_result r = http_parser_head(&w->answer, data, len, &used);
		int status;

		if (r == PARSE_BAD)
			return conn_refuse(w->conn, "unreadable", w->conn->name, w->answer.reason);
		data += used;
		len -= used;
		if (r != PARSE_DONE)
			return;
		status = http_parser_status(&w->answer);
		w->telling = status < 200; /* the real one follows */
		send_answer_head(w);
		http_parser_next(&w->answer);
	}
	if (len > 0 && alive(w))
		conn_to_client(w->conn, data, len);
}

void http_filter_from_server(struct http_filter *w, const char *data, size_t len)
{
	enum parse_result r;
	size_t used;

	w->answered = true;
	if (w->upgrading)
		return take_upgrade(w, data, len);
	if (w->telling)
		return take_last_head(w, data, len);
	if (!w->guarded)
		return conn_to_client(w->conn, data, len);
	while (len > 0 && alive(w)) {
		if (!w->answering)
			return conn_close(w->conn); /* the client did not ask */
		r = w->answer_in_body ? http_parser_body(&w->answer, data, len, &used)
				      : http_parser_head(&w->answer, data, len, &used);
		if (!alive(w))
			return;
		if (r == PARSE_BAD)
			return conn_refuse(w->conn, "unreadable", w->conn->name, w->answer.reason);
		data += used;
		len -= used;
		if (r == PARSE_DONE && w->answer_in_body)
			answer_ended(w);
		else if (r == PARSE_DONE)
			take_answer_head(w);
	}
}

/* An answer whose end is the connection's: what was held back goes, too. */
void http_filter_server_ended(struct http_filter *w)
{
	if (w->guarded && w->answering && w->answer_in_body && alive(w) && !w->answer_chunked)
		emit(w, NULL, 0, true);
}

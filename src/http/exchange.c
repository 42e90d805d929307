#include "http/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/conn.h"

#define FIELDS_MAX 16384 /* of a reply */
#define HEAD_SIZE  512   /* of a reply, without the handler's own fields */

/* ---- the request ---- */

const char *http_header(const struct http_exchange *x, const char *name)
{
	return http_parser_find(&conn_of(x)->parser, name);
}

bool http_header_at(const struct http_exchange *x, size_t i, const char **name,
		    const char **value)
{
	return http_parser_field(&conn_of(x)->parser, i, name, value);
}

struct http_server *http_exchange_server(const struct http_exchange *x)
{
	return conn_of(x)->server;
}

bool http_own(struct http_exchange *x, uint8_t share)
{
	struct http_conn *c = conn_of(x);
	size_t *counts = c->server->conn_shares;
	bool fits = share == c->counted || counts[share] < c->server->limits.conn_share;

	x->share = share;
	if (!fits) { /* it stays where it was counted, and goes */
		c->keep_alive = false;
		return false;
	}
	counts[c->counted]--;
	c->counted = share;
	counts[share]++;
	return true;
}

void http_tag(struct http_exchange *x, const char *tag)
{
	snprintf(conn_of(x)->tag, HTTP_TAG_SIZE, "%s", tag);
}

void http_exchange_peer(const struct http_exchange *x, char *out, size_t size)
{
	struct sockaddr_storage at;
	int len = sizeof(at);

	out[0] = '\0';
	if (uv_tcp_getpeername(&conn_of(x)->tcp, (struct sockaddr *)&at, &len) == 0)
		(void)uv_ip_name((struct sockaddr *)&at, out, size); /* or it stays empty */
}

/* ---- the head of a reply ---- */

static bool is_token(const char *s)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (const char *c = s; *c; c++)
		if (!((*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z') ||
		      strchr(marks, *c)))
			return false;
	return s[0];
}

static bool is_field_value(const char *s)
{
	for (; *s; s++)
		if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

bool http_reply_header(struct http_exchange *x, const char *name, const char *value)
{
	size_t more = strlen(name) + strlen(value) + 4, len = x->reply_fields_len;

	if (!is_token(name) || !is_field_value(value) || more > FIELDS_MAX - len)
		return false;
	x->reply_fields = xrealloc(x->reply_fields, len + more + 1);
	snprintf(x->reply_fields + len, more + 1, "%s: %s\r\n", name, value);
	x->reply_fields_len = len + more;
	return true;
}

/* clang-format off */
static const struct {
	int status;
	const char *text;
} statuses[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};
/* clang-format on */

const char *http_status_text(int status)
{
	for (size_t i = 0; i < array_len(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "Unnamed";
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304 || status < 200;
}

/* A head's text grows piece by piece; what does not fit is a mistake of ours. */
struct text {
	char data[HEAD_SIZE];
	size_t len;
};

static void add(struct text *t, const char *s)
{
	size_t len = strlen(s);

	if (len > sizeof(t->data) - t->len)
		abort();
	memcpy(t->data + t->len, s, len);
	t->len += len;
}

static void add_number(struct text *t, uint64_t n, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = "0123456789abcdef"[n % base];
	while ((n /= base) > 0);
	add(t, digits + at);
}

static void add_field(struct text *t, const char *name, const char *value)
{
	add(t, name);
	add(t, ": ");
	add(t, value);
	add(t, "\r\n");
}

/* Everything but the length, the handler's own fields and the empty line. */
static void begin_head(struct http_conn *c, struct text *t, int status, const char *type)
{
	add(t, "HTTP/1.1 ");
	add_number(t, (uint64_t)status, 10);
	add(t, " ");
	add(t, http_status_text(status));
	add(t, "\r\n");
	add_field(t, "Date", server_date(c->server));
	if (type && strlen(type) < 128 && is_field_value(type))
		add_field(t, "Content-Type", type);
	if (c->server->closing)
		c->keep_alive = false;
	if (!c->keep_alive)
		add(t, "Connection: close\r\n");
	else if (http_parser_is_1_0(&c->parser))
		add(t, "Connection: keep-alive\r\n");
}

static uv_buf_t text_buf(struct text *t)
{
	return uv_buf_init(t->data, (unsigned)t->len);
}

static uv_buf_t fields_buf(const struct http_exchange *x)
{
	return uv_buf_init(x->reply_fields, (unsigned)x->reply_fields_len);
}

/* ---- the whole reply ---- */

/* A reply to a request we have not seen the end of may wait for it, or may not. */
static bool should_hold(const struct http_conn *c)
{
	return c->body != BODY_DONE && !c->continue_due &&
	       c->x.content_length <= HTTP_DRAIN_MAX;
}

/*
 * The rest of the request is read first: it may turn out malformed, and then
 * this reply must not be the answer to it.
 */
static void hold(struct http_conn *c, const uv_buf_t *bufs, unsigned count)
{
	c->held = buf_make(HTTP_OUTPUT_MAX);
	for (unsigned i = 0; i < count; i++)
		if (bufs[i].len)
			buf_add(&c->held, bufs[i].base, bufs[i].len);
	conn_move_body(c, BODY_DRAIN);
	conn_await_body(c);
	conn_make_ready(c);
}

void http_reply(struct http_exchange *x, int status, const char *type, const void *body,
		size_t len)
{
	struct http_conn *c = conn_of(x);
	struct text t = { .len = 0 };
	static char end[] = "\r\n";
	bool held = should_hold(c);

	if (c->state != CONN_EXCHANGE) {
		conn_disown(c);
		return;
	}
	if (c->body != BODY_DONE && !held)
		c->keep_alive = false;
	begin_head(c, &t, status, type);
	if (!has_no_body(status)) {
		add(&t, "Content-Length: ");
		add_number(&t, len, 10);
		add(&t, "\r\n");
	}
	if (c->head_only || has_no_body(status))
		len = 0;

	uv_buf_t bufs[] = {
		text_buf(&t),
		fields_buf(x),
		uv_buf_init(end, 2),
		{ .base = (char *)body, .len = len },
	};

	if (held)
		hold(c, bufs, array_len(bufs));
	else
		(void)conn_write(c, bufs, array_len(bufs));
	conn_disown(c);
	if (!held)
		conn_finish(c);
}

/* ---- a reply in pieces ---- */

static void stream_begin(struct http_exchange *x, enum reply_form form, int status,
			 const char *type)
{
	struct http_conn *c = conn_of(x);
	struct text t = { .len = 0 };
	static char end[] = "\r\n";

	c->form = (uint8_t)form;
	if (form == REPLY_CLOSED && !c->head_only)
		c->keep_alive = false; /* the end of the connection is the end of the body */
	begin_head(c, &t, status, type);
	if (form == REPLY_CHUNKED)
		add(&t, "Transfer-Encoding: chunked\r\n");
	if (form == REPLY_SIZED) {
		add(&t, "Content-Length: ");
		add_number(&t, c->stream_left, 10);
		add(&t, "\r\n");
	}
	if (type && strcmp(type, "text/event-stream") == 0)
		add(&t, "Cache-Control: no-store\r\n");

	uv_buf_t bufs[] = { text_buf(&t), fields_buf(x), uv_buf_init(end, 2) };

	(void)conn_write(c, bufs, array_len(bufs));
	free(take_ptr(x->reply_fields));
	x->reply_fields_len = 0;
	x->method = x->path = x->query = "";
	x->upgrade = NULL;
	http_parser_forget(&c->parser);
}

void http_stream_begin(struct http_exchange *x, int status, const char *type)
{
	struct http_conn *c = conn_of(x);

	if (c->state != CONN_EXCHANGE || c->form != REPLY_WHOLE)
		return;
	stream_begin(x, http_parser_is_1_0(&c->parser) ? REPLY_CLOSED : REPLY_CHUNKED, status,
		     type);
}

void http_stream_begin_sized(struct http_exchange *x, int status, const char *type,
			     uint64_t length)
{
	struct http_conn *c = conn_of(x);

	if (c->state != CONN_EXCHANGE || c->form != REPLY_WHOLE)
		return;
	c->stream_left = length;
	stream_begin(x, REPLY_SIZED, status, type);
}

bool http_stream_data(struct http_exchange *x, const void *data, size_t len)
{
	struct http_conn *c = conn_of(x);
	struct text t = { .len = 0 };
	static char end[] = "\r\n";
	uv_buf_t body = { .base = (char *)data, .len = len };

	if (c->state != CONN_EXCHANGE)
		return true;
	if (len == 0 || c->head_only)
		return c->full;
	if (c->form == REPLY_SIZED && len > c->stream_left) {
		conn_break(c); /* more than was promised is no answer either */
		return true;
	}
	c->stream_left -= c->form == REPLY_SIZED ? len : 0;
	if (c->form != REPLY_CHUNKED)
		return conn_write(c, &body, 1) || c->state != CONN_EXCHANGE;
	add_number(&t, len, 16);
	add(&t, "\r\n");

	uv_buf_t bufs[] = { text_buf(&t), body, uv_buf_init(end, 2) };

	return conn_write(c, bufs, array_len(bufs)) || c->state != CONN_EXCHANGE;
}

void http_stream_end(struct http_exchange *x)
{
	struct http_conn *c = conn_of(x);
	static char end[] = "0\r\n\r\n";

	if (c->state == CONN_EXCHANGE && c->form == REPLY_CHUNKED && !c->head_only)
		(void)conn_write(c, &(uv_buf_t){ .base = end, .len = 5 }, 1);
	if (c->form == REPLY_SIZED && c->stream_left > 0 && !c->head_only)
		return http_abort(x);
	conn_disown(c);
	conn_finish(c);
}

void http_abort(struct http_exchange *x)
{
	struct http_conn *c = conn_of(x);

	conn_disown(c);
	conn_break(c);
}

/* The body of a request: as it comes, or in one piece. */
#include <stdlib.h>

#include "http/conn.h"

static void say_continue(struct http_conn *c)
{
	static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (!c->continue_due)
		return;
	c->continue_due = false;
	if (c->ahead.len == 0)
		(void)conn_write(c, &(uv_buf_t){ .base = text, .len = sizeof(text) - 1 }, 1);
}

void http_body_read(struct http_exchange *x, http_data_fn on_data, http_fn on_end)
{
	struct http_conn *c = conn_of(x);

	if (c->state != CONN_EXCHANGE)
		return;
	x->on_body = on_data;
	x->on_body_end = on_end;
	if (c->body == BODY_UNASKED) {
		conn_move_body(c, BODY_READ);
		conn_await_body(c);
		say_continue(c);
	}
	conn_make_ready(c);
}

void http_body_pause(struct http_exchange *x)
{
	struct http_conn *c = conn_of(x);

	if (c->state != CONN_EXCHANGE || c->body != BODY_READ)
		return;
	conn_move_body(c, BODY_PAUSED);
	c->deadline = 0;
}

void http_body_resume(struct http_exchange *x)
{
	struct http_conn *c = conn_of(x);

	if (c->state != CONN_EXCHANGE || c->body != BODY_PAUSED)
		return;
	conn_move_body(c, BODY_READ);
	conn_await_body(c);
	conn_make_ready(c);
}

/* ---- in one piece ---- */

struct http_collect {
	struct buf body;
	http_whole_fn on_whole;
	struct http_server *server;
	uint8_t share;
	size_t counted; /* of the server's bodies */
};

void http_collect_free(struct http_collect *collect)
{
	if (!collect)
		return;
	collect->server->bodies -= collect->counted;
	collect->server->shares[collect->share] -= collect->counted;
	buf_done(&collect->body);
	free(collect);
}

static void http_collect_freep(struct http_collect **collect)
{
	http_collect_free(*collect);
}

static void refuse(struct http_exchange *x, http_whole_fn on_whole, const struct err *e)
{
	x->on_body = NULL;
	x->on_body_end = NULL;
	on_whole(x, NULL, 0, e);
}

static void too_large(struct http_exchange *x, size_t max, http_whole_fn on_whole)
{
	struct err e;

	err_set(&e, ERR_TOO_LARGE, "the body is longer than %zu bytes", max);
	refuse(x, on_whole, &e);
}

/* Bodies that never end must not take the memory of those that do. */
static bool count(struct http_collect *collect, size_t len)
{
	struct http_server *server = collect->server;
	size_t *share = &server->shares[collect->share];

	if (len > server->limits.body_total - server->bodies ||
	    len > server->limits.body_share - *share)
		return false;
	collect->counted += len;
	server->bodies += len;
	*share += len;
	return true;
}

static void on_piece(struct http_exchange *x, const char *data, size_t len)
{
	struct http_collect *collect = x->collect;
	struct err e;

	if (!count(collect, len)) {
		err_set(&e, ERR_BUSY, "too many requests whose bodies are not complete");
		err_fix(&e, "Send the requests that were begun to their end, or fewer at once.");
		return refuse(x, collect->on_whole, &e);
	}
	buf_add(&collect->body, data, len);
	if (buf_overflowed(&collect->body))
		too_large(x, collect->body.max - 1, collect->on_whole);
}

static void on_last_piece(struct http_exchange *x)
{
	cleanup(http_collect_freep) struct http_collect *collect = take_ptr(x->collect);

	collect->on_whole(x, buf_str(&collect->body), collect->body.len, NULL);
}

void http_collect(struct http_exchange *x, size_t max, http_whole_fn on_whole)
{
	struct http_conn *c = conn_of(x);

	if (x->content_length == 0) {
		on_whole(x, "", 0, NULL);
		return;
	}
	if (x->content_length > 0 && (uint64_t)x->content_length > max) {
		too_large(x, max, on_whole);
		return;
	}
	x->collect = xcalloc(1, sizeof(*x->collect));
	x->collect->body = buf_make(max + 1);
	x->collect->on_whole = on_whole;
	x->collect->server = c->server;
	x->collect->share = x->share;
	c->whole_by = uv_now(c->server->loop) + c->server->limits.whole_ms;
	http_body_read(x, on_piece, on_last_piece);
}

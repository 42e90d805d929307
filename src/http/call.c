#include "http/call.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/address.h"
#include "http/parse.h"
#include "lib/loop.h"

#define READ_SIZE  65536
#define QUEUE_MAX  (64UL * 1024 * 1024)
#define QUIET_S    5 /* without a byte: the kernel asks whether the other side is there */
#define PROBES     3
#define PROBE_S    2
#define UNHEARD_MS 10000 /* of bytes the other side does not acknowledge */

struct http_call {
	uv_tcp_t tcp;
	uv_timer_t timer;
	uv_connect_t connect;
	const struct http_call_events *events; /* NULL: the owner is not told any more */
	void *data;
	struct http_parser parser;
	struct buf early;
	bool chunked, connected, paused, reading, full, closing;
	bool head_told, tunnel;
	int open_handles;
	size_t writes; /* that wait in the socket's queue */
};

struct call_write {
	uv_write_t req;
	char data[];
};

static void on_closed(uv_handle_t *handle)
{
	struct http_call *call = handle->data;

	if (--call->open_handles > 0)
		return;
	http_parser_done(&call->parser);
	buf_done(&call->early);
	free(call);
}

static void shut_down(struct http_call *call)
{
	call->events = NULL;
	if (call->closing)
		return;
	call->closing = true;
	uv_close((uv_handle_t *)&call->tcp, on_closed);
	uv_close((uv_handle_t *)&call->timer, on_closed);
}

void http_call_close(struct http_call *call)
{
	shut_down(call);
}

static void ended(struct http_call *call)
{
	const struct http_call_events *events = call->events;
	void *data = call->data;

	shut_down(call);
	if (events)
		events->on_end(data);
}

static void failed(struct http_call *call, const struct err *e)
{
	const struct http_call_events *events = call->events;
	enum http_call_reach reach = call->head_told   ? CALL_REPLYING
				     : call->connected ? CALL_SENT
						       : CALL_NOT_SENT;
	void *data = call->data;

	shut_down(call);
	if (events)
		events->on_failed(data, reach, e);
}

static void failed_uv(struct http_call *call, int status)
{
	struct err e;

	err_uv(&e, status, "%s", call->connected ? "the connection broke" : "it does not answer");
	failed(call, &e);
}

/* ---- out ---- */

/* In bytes of our memory: what a write stands in counts, too. */
static size_t backlog(const struct http_call *call)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&call->tcp) + call->early.len +
	       call->writes * sizeof(struct call_write);
}

static void on_written(uv_write_t *req, int status)
{
	struct http_call *call = req->data;

	free(container_of(req, struct call_write, req));
	call->writes--;
	if (!call->events)
		return;
	if (status < 0)
		return failed_uv(call, status);
	if (call->full && backlog(call) < HTTP_CALL_MARK) {
		call->full = false;
		call->events->on_drain(call->data);
	}
}

static void send_bytes(struct http_call *call, const char *bytes, size_t len)
{
	struct call_write *w;
	uv_buf_t buf;
	int sent = 0;

	if (!call->connected) {
		buf_add(&call->early, bytes, len);
		return;
	}
	if (backlog(call) == 0)
		sent = uv_try_write((uv_stream_t *)&call->tcp,
				    &(uv_buf_t){ .base = (char *)bytes, .len = len }, 1);
	if (sent < 0)
		sent = 0; /* broken: the write below says so, from the loop */
	if ((size_t)sent == len)
		return;
	len -= (size_t)sent;
	w = xrealloc(NULL, sizeof(*w) + len);
	memcpy(w->data, bytes + sent, len);
	w->req.data = call;
	buf = uv_buf_init(w->data, (unsigned)len);
	if (uv_write(&w->req, (uv_stream_t *)&call->tcp, &buf, 1, on_written) < 0)
		free(w); /* the reading side sees it, too */
	else
		call->writes++;
}

static void on_overrun(uv_timer_t *timer)
{
	struct err e;

	err_set(&e, ERR_INTERNAL, "more was written than is taken");
	failed(timer->data, &e);
}

bool http_call_write(struct http_call *call, const void *bytes, size_t len)
{
	char size[24];

	if (call->closing || len == 0)
		return call->full;
	if (len > QUEUE_MAX - backlog(call)) { /* an owner that ignores the mark ends here */
		(void)uv_timer_start(&call->timer, on_overrun, 0, 0);
		return true;
	}
	if (call->chunked && !call->tunnel) {
		snprintf(size, sizeof(size), "%zx\r\n", len);
		send_bytes(call, size, strlen(size));
	}
	send_bytes(call, bytes, len);
	if (call->chunked && !call->tunnel)
		send_bytes(call, "\r\n", 2);
	call->full = backlog(call) >= HTTP_CALL_MARK;
	return call->full;
}

void http_call_end_body(struct http_call *call)
{
	if (call->chunked && !call->closing)
		send_bytes(call, "0\r\n\r\n", 5);
}

/* ---- in ---- */

static void on_body(struct http_parser *p, const char *data, size_t len)
{
	struct http_call *call = container_of(p, struct http_call, parser);

	if (call->events)
		call->events->on_data(call->data, data, len);
}

/* One piece of what came. False: there is nothing more to do with the rest. */
static bool take_head(struct http_call *call, const char *data, size_t len, size_t *used)
{
	struct http_parser *p = &call->parser;
	enum parse_result result = http_parser_head(p, data, len, used);
	struct err e;

	if (result == PARSE_BAD) {
		err_set(&e, ERR_INTERNAL, "its reply is no HTTP: %s", p->reason);
		failed(call, &e);
		return false;
	}
	if (result == PARSE_MORE)
		return true;
	if (http_parser_status(p) < 200 && http_parser_status(p) != 101) {
		http_parser_next(p); /* 100 Continue and its like: the reply is still to come */
		return true;
	}
	call->head_told = true;
	call->tunnel = http_parser_status(p) == 101;
	call->events->on_head(call->data, call);
	if (call->events && p->whole && !call->tunnel)
		ended(call);
	return call->events != NULL;
}

static bool take_body(struct http_call *call, const char *data, size_t len, size_t *used)
{
	enum parse_result result = http_parser_body(&call->parser, data, len, used);
	struct err e;

	if (!call->events)
		return false;
	if (result == PARSE_MORE)
		return true;
	if (result == PARSE_DONE) {
		ended(call);
		return false;
	}
	err_set(&e, ERR_INTERNAL, "its reply is no HTTP: %s", call->parser.reason);
	failed(call, &e);
	return false;
}

static void take(struct http_call *call, const char *data, size_t len)
{
	bool more = call->events != NULL;

	for (size_t used; more && len > 0; data += used, len -= used) {
		used = len;
		if (!call->head_told)
			more = take_head(call, data, len, &used);
		else if (call->tunnel)
			call->events->on_data(call->data, data, len);
		else
			more = take_body(call, data, len, &used);
		more = more && call->events;
	}
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)handle, (void)suggested;
	*buf = uv_buf_init(xrealloc(NULL, READ_SIZE), READ_SIZE);
}

static void on_eof(struct http_call *call)
{
	struct err e;

	if (call->tunnel)
		return ended(call);
	err_set(&e, ERR_BUSY, "the connection ended before the reply was complete");
	failed(call, &e);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_call *call = stream->data;

	if (n > 0)
		take(call, buf->base, (size_t)n);
	free(buf->base);
	if (!call->events || n >= 0)
		return;
	if (n == UV_EOF)
		on_eof(call);
	else
		failed_uv(call, (int)n);
}

static void adjust_reading(struct http_call *call)
{
	bool want = call->connected && !call->paused && !call->closing;

	if (want == call->reading || call->closing)
		return;
	call->reading = want;
	if (!want)
		uv_read_stop((uv_stream_t *)&call->tcp);
	else
		(void)uv_read_start((uv_stream_t *)&call->tcp, on_alloc, on_read);
}

void http_call_pause(struct http_call *call)
{
	call->paused = true;
	adjust_reading(call);
}

void http_call_resume(struct http_call *call)
{
	call->paused = false;
	adjust_reading(call);
}

int http_call_status(const struct http_call *call)
{
	return http_parser_status(&call->parser);
}

bool http_call_field(const struct http_call *call, size_t i, const char **name, const char **value)
{
	return http_parser_field(&call->parser, i, name, value);
}

const char *http_call_find(const struct http_call *call, const char *name)
{
	return http_parser_find(&call->parser, name);
}

int64_t http_call_length(const struct http_call *call)
{
	return http_parser_content_length(&call->parser);
}

/* ---- the beginning ---- */

/* A machine that is gone says nothing: without this a quiet stream would wait for ever. */
static void notice_silence(struct http_call *call)
{
	int probes = PROBES, every = PROBE_S, unheard = UNHEARD_MS;
	uv_os_fd_t fd;

	(void)uv_tcp_nodelay(&call->tcp, 1);
	(void)uv_tcp_keepalive(&call->tcp, 1, QUIET_S);
	if (uv_fileno((uv_handle_t *)&call->tcp, &fd) < 0)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard));
}

static void on_connected(uv_connect_t *req, int status)
{
	struct http_call *call = req->data;
	cleanup(buf_done) struct buf early = buf_make(0);

	if (!call->events)
		return;
	if (status < 0)
		return failed_uv(call, status);
	uv_timer_stop(&call->timer);
	call->connected = true;
	notice_silence(call);
	early = call->early;
	call->early = buf_make(0);
	send_bytes(call, early.data, early.len);
	adjust_reading(call);
	if (call->full && backlog(call) < HTTP_CALL_MARK) {
		call->full = false;
		call->events->on_drain(call->data);
	}
}

static void on_late(uv_timer_t *timer)
{
	failed_uv(timer->data, UV_ETIMEDOUT);
}

int http_call_open(uv_loop_t *loop, const struct http_call_spec *spec,
		   const struct http_call_events *events, void *data, struct http_call **ret,
		   struct err *e)
{
	struct sockaddr_storage to;
	struct http_call *call;
	int r;

	if (http_address(spec->address, &to, e) < 0)
		return -1;
	call = xcalloc(1, sizeof(*call));
	call->events = events;
	call->data = data;
	call->chunked = spec->chunked;
	call->early = buf_make(QUEUE_MAX + READ_SIZE);
	buf_add(&call->early, spec->head, spec->head_len);
	http_parser_init_reply(&call->parser, spec->head_only);
	call->parser.on_body = on_body;
	(void)uv_tcp_init(loop, &call->tcp); /* it cannot fail: there is no socket yet */
	(void)uv_timer_init(loop, &call->timer);
	call->tcp.data = call->timer.data = call->connect.data = call;
	call->open_handles = 2;
	r = uv_tcp_connect(&call->connect, &call->tcp, (struct sockaddr *)&to, on_connected);
	if (r < 0) {
		shut_down(call);
		err_uv(e, r, "connect to %s", spec->address);
		e->code = ERR_BUSY;
		return -1;
	}
	(void)uv_timer_start(&call->timer, on_late, spec->connect_ms, 0);
	*ret = call;
	return 0;
}

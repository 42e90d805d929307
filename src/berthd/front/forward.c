#include "berthd/front/forward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "berthd/cluster/peer-token.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/front/place-create.h"
#include "berthd/runtime/berthd.h"
#include "http/call.h"
#include "http/tunnel.h"
#include "lib/crash.h"
#include "lib/errno-map.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"

#define HEAD_MAX  (32UL * 1024)
#define WHOLE_MAX (256UL * 1024) /* an answer of a known length up to this goes back in one piece */

struct forward {
	struct request *rq;
	struct http_call *call;
	struct http_tunnel *tunnel;
	char host[SANDBOX_HOST_SIZE];
	char sandbox[SANDBOX_ID_SIZE]; /* "": it is about none */
	char type[128];
	struct buf whole;
	int status;
	bool streaming;                        /* the answer goes back as it comes */
	bool placing;                          /* it is a create: another host may take it */
	void (*unreached)(struct request *rq); /* may be NULL */
	bool refused;                          /* this one did not */
	bool events;                           /* and is an event stream */
};

/* ---- the end ---- */

static void forward_free(struct forward *f)
{
	buf_done(&f->whole);
	free(f);
}

/* The request is the caller's again, as it was. */
static void give_back(struct forward *f)
{
	struct request *rq = f->rq;

	rq->on_gone = rq->on_drain = NULL;
	rq->data = NULL;
	forward_free(f);
}

/* The client's side is over, too. */
static void finish(struct forward *f, int status)
{
	struct request *rq = f->rq;

	forward_free(f);
	request_end(rq, status);
}

static void on_client_gone(struct request *rq)
{
	struct forward *f = rq->data;

	http_call_close(f->call); /* the other host sees it go, as if it had been its own client */
	finish(f, 499);
}

static void on_client_drain(struct request *rq)
{
	struct forward *f = rq->data;

	http_call_resume(f->call);
}

/* ---- an upgraded connection ---- */

static size_t on_tunnel_data(void *data, const char *bytes, size_t len)
{
	struct forward *f = data;

	if (http_call_write(f->call, bytes, len))
		http_tunnel_pause(f->tunnel);
	return len;
}

static void on_tunnel_drain(void *data)
{
	struct forward *f = data;

	http_call_resume(f->call);
}

static void on_tunnel_gone(void *data)
{
	struct forward *f = data;

	http_call_close(f->call);
	finish(f, 101);
}

static const struct http_tunnel_events tunnel_events = {
	.on_data = on_tunnel_data,
	.on_drain = on_tunnel_drain,
	.on_gone = on_tunnel_gone,
};

/* ---- the answer ---- */

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strcasecmp(name, *list) == 0)
			return true;
	return false;
}

/* Fields about a connection and not about what it carries, and those we write ourselves. */
static bool stays_behind(const char *name)
{
	static const char *const fields[] = {
		"Connection",
		"Keep-Alive",
		"Proxy-Connection",
		"Proxy-Authorization",
		"TE",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
		"Expect",
		"Content-Length",
		"Date",
		"X-Request-Id",
		"X-Trace-Id",
		"Via",
		NULL,
	};

	return is_one_of(name, fields) || strncasecmp(name, "Berth-Peer", 10) == 0 ||
	       strcasecmp(name, FORWARD_MOVED) == 0;
}

static void copy_fields(struct forward *f)
{
	const char *name, *value;

	for (size_t i = 0; http_call_field(f->call, i, &name, &value); i++)
		if (!stays_behind(name) && strcasecmp(name, "Content-Type") != 0)
			(void)!http_reply_header(f->rq->x, name, value);
}

static void on_failed(void *data, enum http_call_reach reach, const struct err *why);

/* A berthd that takes the pass answers with the id of the request: this was a proxy on the way
 * to it, or a berthd that refused the pass, as one does whose clock differs by a minute. */
static bool is_foreign_answer(const struct forward *f, const struct http_call *call)
{
	const char *id = http_call_find(call, "X-Request-Id");

	return !id || strcmp(id, f->rq->id) != 0;
}

static void on_foreign_answer(struct forward *f, struct http_call *call)
{
	int status = http_call_status(call);
	struct err why;

	err_set(&why, ERR_BUSY, "status %d, of a proxy on the way or of a host that refused "
				"the pass",
		status);
	http_call_close(call);
	on_failed(f, status == 503 ? CALL_NOT_SENT : CALL_SENT, &why);
}

static void on_head(void *data, struct http_call *call)
{
	struct forward *f = data;
	const char *type = http_call_find(call, "Content-Type");
	const char *protocol = http_call_find(call, "Upgrade");
	int64_t length = http_call_length(call);

	if (is_foreign_answer(f, call))
		return on_foreign_answer(f, call);
	f->status = http_call_status(call);
	if (f->sandbox[0] && http_call_find(call, FORWARD_MOVED))
		sandbox_cache_forget(f->rq->reactor->berthd->sandboxes, f->sandbox);
	f->refused = f->placing && length >= 0 && http_call_find(call, FORWARD_REFUSED);
	if (f->refused)
		return;
	copy_fields(f);
	if (f->status == 101) {
		f->tunnel = http_upgrade(take_ptr(f->rq->x), protocol ? protocol : "unnamed",
					 &tunnel_events, f);
		return;
	}
	if (!type || !str_copy(f->type, sizeof(f->type), type))
		f->type[0] = '\0';
	f->events = str_starts(f->type, "text/event-stream");
	f->streaming = length < 0 || (uint64_t)length > WHOLE_MAX;
	type = f->type[0] ? f->type : NULL;
	if (length < 0)
		http_stream_begin(f->rq->x, f->status, type);
	else if (f->streaming)
		http_stream_begin_sized(f->rq->x, f->status, type, (uint64_t)length);
}

static void on_data(void *data, const char *bytes, size_t len)
{
	struct forward *f = data;

	if (f->tunnel ? http_tunnel_write(f->tunnel, bytes, len)
		      : f->streaming && http_stream_data(f->rq->x, bytes, len))
		http_call_pause(f->call);
	else if (!f->tunnel && !f->streaming)
		buf_add(&f->whole, bytes, len);
}

static void on_drain(void *data)
{
	struct forward *f = data;

	if (f->tunnel)
		http_tunnel_resume(f->tunnel);
	else if (f->rq->x)
		http_body_resume(f->rq->x);
}

/* In the host's own words, to be told if no host takes it. */
static void refused(struct forward *f)
{
	cleanup(json_free) struct json *said = NULL;
	struct request *rq = f->rq;
	struct err e, ignored;

	err_set(&e, ERR_BUSY, "host %s did not take it", f->host);
	if (json_parse(buf_str(&f->whole), f->whole.len, &said, &ignored) == 0) {
		err_set(&e, err_code_by_name(json_get_str(said, "code")), "%s",
			json_get_str(said, "message"));
		err_word_reason(&e, json_get_str(said, "reason"));
		err_fix(&e, "%s", json_get_str(said, "remediation"));
	}
	give_back(f);
	if (!placing_refused(rq, &e))
		request_fail(rq, &e);
}

static void on_end(void *data)
{
	struct forward *f = data;
	struct http_exchange *x;

	if (f->refused)
		return refused(f);
	x = take_ptr(f->rq->x);
	if (f->tunnel)
		http_tunnel_close(f->tunnel);
	else if (f->streaming)
		http_stream_end(x);
	else
		http_reply(x, f->status, f->type[0] ? f->type : NULL, f->whole.data, f->whole.len);
	finish(f, f->status);
}

/* ---- when it does not work ---- */

static void explain(const struct forward *f, enum http_call_reach reach, const struct err *why,
		    struct err *e)
{
	if (reach == CALL_NOT_SENT) {
		err_set(e, ERR_BUSY, "host %s cannot be reached from here (%s): nothing was done",
			f->host, why->msg);
		err_fix(e, "Try again in a few seconds; 'berth host ls' shows how the host is.");
		return;
	}
	err_set(e, ERR_TIMEOUT, "host %s was cut off before its answer was complete (%s): what "
				"came of this is not known here",
		f->host, why->msg);
	err_fix(e, "Look at the sandbox and its execs, or send the same request with the same "
		   "Idempotency-Key again.");
}

static void on_failed(void *data, enum http_call_reach reach, const struct err *why)
{
	struct forward *f = data;
	struct request *rq = f->rq;
	cleanup(buf_done) struct buf json = buf_make(4096);
	struct err e;

	explain(f, reach, why, &e);
	if (f->placing && reach == CALL_NOT_SENT) {
		give_back(f);
		if (!placing_refused(rq, &e))
			request_fail(rq, &e);
		return;
	}
	sandbox_cache_forget(rq->reactor->berthd->sandboxes, f->sandbox); /* it may have moved */
	if (f->tunnel) {
		http_tunnel_close(f->tunnel); /* what speaks over it sees that an end is missing */
		return finish(f, 504);
	}
	if (reach == CALL_NOT_SENT && f->unreached) {
		void (*unreached)(struct request *) = f->unreached;

		give_back(f);
		return unreached(rq);
	}
	if (!f->streaming) {
		forward_free(f);
		return request_fail(rq, &e);
	}
	if (f->events) {
		request_error_json(rq, &e, &json);
		(void)http_stream_data(rq->x, "\n\n", 2); /* ends an event that was cut */
		(void)request_event(rq, "error", &json);
		http_stream_end(take_ptr(rq->x));
	} else {
		http_abort(take_ptr(rq->x)); /* half of a file must not look like all of it */
	}
	finish(f, 504);
}

static const struct http_call_events call_events = {
	.on_head = on_head,
	.on_data = on_data,
	.on_drain = on_drain,
	.on_end = on_end,
	.on_failed = on_failed,
};

/* ---- the request ---- */

static void on_body(struct http_exchange *x, const char *data, size_t len)
{
	struct forward *f = ((struct request *)x->data)->data;

	if (http_call_write(f->call, data, len))
		http_body_pause(x);
}

static void on_body_end(struct http_exchange *x)
{
	struct forward *f = ((struct request *)x->data)->data;

	http_call_end_body(f->call);
}

static void write_pass(const struct request *rq, const struct peer *to, struct buf *head)
{
	struct berthd *b = rq->reactor->berthd;
	struct peer_token_request about = { .secret = b->peers->secret,
					    .method = rq->x->method,
					    .path = rq->x->path,
					    .query = rq->x->query };
	struct peer_token pass = {
		.role = rq->key.role,
		.at_ms = peers_now_ms(b->peers),
		.nonce = id_number(),
	};

	memcpy(pass.from, b->settings.host, sizeof(pass.from));
	memcpy(pass.to, to->id, sizeof(pass.to));
	memcpy(pass.request, rq->id, sizeof(pass.request));
	memcpy(pass.key, rq->key.id, sizeof(pass.key));
	memcpy(pass.owner, rq->key.owner, sizeof(pass.owner));
	buf_adds(head, PASS_HEADER ": ");
	peer_token_write(&pass, &about, head);
	buf_adds(head, "\r\n");
}

/* Its key stays here: the pass says whose it is. */
static void write_head(const struct request *rq, const struct peer *to, struct buf *head)
{
	static const char *const ours[] = { "Host", "Authorization", "X-API-Key", NULL };
	const struct http_exchange *x = rq->x;
	const char *name, *value;

	buf_addf(head, "%s %s%s%s HTTP/1.1\r\nHost: %s\r\n", x->method, x->path,
		 x->query[0] ? "?" : "", x->query, to->address);
	write_pass(rq, to, head);
	for (size_t i = 0; http_header_at(x, i, &name, &value); i++)
		if (!stays_behind(name) && !is_one_of(name, ours))
			buf_addf(head, "%s: %s\r\n", name, value);
	if (x->upgrade)
		buf_addf(head, "Connection: Upgrade\r\nUpgrade: %s\r\n", x->upgrade);
	else if (rq->body.max) /* it was collected */
		buf_addf(head, "Content-Length: %zu\r\n", rq->body.len);
	else if (x->content_length < 0)
		buf_adds(head, "Transfer-Encoding: chunked\r\n");
	else
		buf_addf(head, "Content-Length: %lld\r\n", (long long)x->content_length);
	buf_adds(head, "\r\n");
}

static void forward_to(struct request *rq, const struct peer *to, bool placing,
		       void (*unreached)(struct request *rq))
{
	struct berthd *b = rq->reactor->berthd;
	cleanup(buf_done) struct buf head = buf_make(HEAD_MAX);
	struct forward *f = xcalloc(1, sizeof(*f));
	bool collected = rq->body.max != 0;
	struct http_call_spec spec = {
		.address = b->settings.peer_proxy[0] ? b->settings.peer_proxy : to->address,
		.chunked = !collected && rq->x->content_length < 0,
		.connect_ms = FORWARD_CONNECT_MS,
	};
	struct err e;

	write_head(rq, to, &head);
	spec.head = buf_str(&head);
	spec.head_len = head.len;
	f->rq = rq;
	f->placing = placing;
	f->unreached = unreached;
	f->whole = buf_make(WHOLE_MAX + 1);
	memcpy(f->host, to->id, sizeof(f->host));
	if (strstr(rq->route->path, "/sandboxes/{}"))
		(void)!str_copy(f->sandbox, sizeof(f->sandbox), rq->param);
	if (buf_overflowed(&head))
		err_set(&e, ERR_TOO_LARGE, "the head is too long to be handed on");
	if (buf_overflowed(&head) ||
	    http_call_open(&rq->reactor->loop, &spec, &call_events, f, &f->call, &e) < 0) {
		forward_free(f);
		return request_fail(rq, &e);
	}
	rq->data = f;
	rq->on_gone = on_client_gone;
	rq->on_drain = on_client_drain;
	crash_point("forward.opened");
	if (collected)
		(void)http_call_write(f->call, rq->body.data, rq->body.len);
	else if (rq->x->content_length != 0)
		http_body_read(rq->x, on_body, on_body_end);
}

void forward_request(struct request *rq, const struct peer *to,
		     void (*unreached)(struct request *rq))
{
	forward_to(rq, to, false, unreached);
}

void forward_create(struct request *rq, const struct peer *to)
{
	forward_to(rq, to, true, NULL);
}

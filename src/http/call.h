/*
 * One request of ours to another server, on libuv and with back-pressure both
 * ways: a connection, a head, a body that goes out as it comes, and a reply that
 * comes in as it is taken.
 *
 * How long it lives. A call begins with http_call_open() and ends exactly once:
 * the owner calls http_call_close(), or on_end() or on_failed() is called, the
 * last call of all. After any of these the pointer is dead. Callbacks come from
 * the loop, never from within these functions.
 *
 * A reply is complete or it failed: a connection that ends early is never taken
 * for the end of a body.
 */
#pragma once

#include <uv.h>

#include "lib/buf.h"
#include "lib/err.h"

#define HTTP_CALL_MARK (256UL * 1024) /* queued bytes: then a write says "full" */

struct http_call;

/* How far it had come when it failed: what the other side can have done. */
enum http_call_reach {
	CALL_NOT_SENT, /* it was never connected: nothing can have happened */
	CALL_SENT,     /* the other side may have acted on it, or not */
	CALL_REPLYING, /* the reply had begun */
};

struct http_call_events {
	void (*on_head)(void *data, struct http_call *call); /* of the reply; see below */
	void (*on_data)(void *data, const char *bytes, size_t len);
	void (*on_drain)(void *data); /* the way out is below its mark again */
	void (*on_end)(void *data);
	void (*on_failed)(void *data, enum http_call_reach reach, const struct err *e);
};

struct http_call_spec {
	const char *address; /* "10.0.0.7:7071", a number and a port */
	const char *head;    /* request line and fields, each with CR LF, and the empty line */
	size_t head_len;
	bool head_only;      /* it is a HEAD */
	bool chunked;        /* its body: http_call_write() makes chunks of it */
	uint64_t connect_ms; /* for the connection to be there */
};

must_check int http_call_open(uv_loop_t *loop, const struct http_call_spec *spec,
			      const struct http_call_events *events, void *data,
			      struct http_call **ret, struct err *e);
void http_call_close(struct http_call *call);

/* The body of the request, or what goes into an upgraded connection. True: full. */
bool http_call_write(struct http_call *call, const void *bytes, size_t len);
void http_call_end_body(struct http_call *call);

/* Stop and go on with the reply. Up to 64 KiB already read may still come. */
void http_call_pause(struct http_call *call);
void http_call_resume(struct http_call *call);

/* The reply, from on_head() on. After 101 on_data() gets the bytes behind it as they are. */
int http_call_status(const struct http_call *call);
bool http_call_field(const struct http_call *call, size_t i, const char **name,
		     const char **value);
const char *http_call_find(const struct http_call *call, const char *name); /* or NULL */
/* Of the body; -1: it comes in chunks. */
int64_t http_call_length(const struct http_call *call);

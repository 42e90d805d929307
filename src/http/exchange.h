/*
 * One request and its reply, in the hands of a handler.
 *
 * How long it lives. An exchange begins with the server's on_request() and ends
 * exactly once, in one of two ways:
 *
 *   - the handler ends it: http_reply(), http_stream_end(), http_abort() or
 *     http_upgrade();
 *   - the client goes first: on_gone() is called, the last call of all.
 *
 * After either the pointer is dead. No callback follows the handler's own end,
 * and the engine never calls back from within a function of this header (but
 * http_collect() may), so a handler frees what it holds in those two places
 * and in no other. All of it happens on the loop's thread.
 */
#pragma once

#include "lib/err.h"

struct http_exchange;
struct http_collect;
struct http_tunnel;
struct http_tunnel_events;

typedef void (*http_fn)(struct http_exchange *x);
typedef void (*http_data_fn)(struct http_exchange *x, const char *data, size_t len);
typedef void (*http_whole_fn)(struct http_exchange *x, const char *body, size_t len,
			      const struct err *e);

struct http_exchange {
	/* The request. Strings live until the reply is begun or the exchange ends. */
	const char *method;     /* "GET" */
	const char *path;       /* raw; begins with '/' (or is "*"): see http/target.h */
	const char *query;      /* raw, without its '?'; "" if there is none */
	const char *upgrade;    /* the protocol it would like to speak instead, or NULL */
	int64_t content_length; /* of the body: 0 none, -1 unknown */

	/* The handler's. */
	void *data;
	uint8_t share;    /* see http_own(); 0: no owner's */
	http_fn on_gone;  /* the client went away before the reply was complete */
	http_fn on_drain; /* the stream's queue is below its mark again */

	/* The engine's own. */
	http_data_fn on_body;
	http_fn on_body_end;
	struct http_collect *collect;
	char *reply_fields;
	size_t reply_fields_len;
};

/* ---- the request ---- */

/* The first header of that name, in any case; NULL if there is none. */
const char *http_header(const struct http_exchange *x, const char *name);
/* The i-th header, from 0; false past the last. */
bool http_header_at(const struct http_exchange *x, size_t i, const char **name,
		    const char **value);

/*
 * Whose it is, before its body is read and anything is written: these are counted there, and the
 * connection is until its next request. False: that owner has its part of all connections; the
 * answer (the handler's) is this one's last.
 */
must_check bool http_own(struct http_exchange *x, uint8_t share);

/*
 * By what right it is answered, for http_server_break(): of the connection, from here to its
 * next request, also when it has left HTTP. What does not fit is cut.
 */
#define HTTP_TAG_SIZE 64
void http_tag(struct http_exchange *x, const char *tag);

/* ---- its body ---- */

/*
 * Have the body delivered as it comes; `on_end` once, after the last byte (soon,
 * if there is no body). Nothing is read before this is called, so a handler may
 * take its time to decide. A body that is malformed or stays away ends in
 * on_gone(). A body no handler reads is drained if it is small; otherwise the
 * connection ends with the reply.
 */
void http_body_read(struct http_exchange *x, http_data_fn on_data, http_fn on_end);

/* Stop and go on. Up to 64 KiB already read may still come after a pause. */
void http_body_pause(struct http_exchange *x);
void http_body_resume(struct http_exchange *x);

/*
 * Have it in one piece of at most `max` bytes. `on_whole` is called once, maybe
 * before this returns: make it the last thing you do. Its last argument is NULL,
 * or ERR_TOO_LARGE, or ERR_BUSY: others of this `share`, or all together, have too
 * much on its way (the handler replies as it likes). The bytes are NUL-terminated
 * and live until on_whole() returns.
 */
void http_collect(struct http_exchange *x, size_t max, http_whole_fn on_whole);

/* ---- the reply ---- */

/*
 * One more header for the reply. False (and nothing added) if a character does
 * not belong there; CR and LF never do.
 */
must_check bool http_reply_header(struct http_exchange *x, const char *name,
				  const char *value);

/* The whole reply. `type` may be NULL if there is no body. Ends the exchange. */
void http_reply(struct http_exchange *x, int status, const char *type, const void *body,
		size_t len);

/*
 * A reply in pieces, of unknown length. The request's strings are gone after
 * begin: copy what is still needed. text/event-stream gets `Cache-Control:
 * no-store` by itself.
 */
void http_stream_begin(struct http_exchange *x, int status, const char *type);
/* The same, of a length that is known: an end before all of it was given breaks the connection. */
void http_stream_begin_sized(struct http_exchange *x, int status, const char *type,
			     uint64_t length);
/* The bytes are written or copied. True: wait for on_drain(), or for on_gone() if it broke. */
bool http_stream_data(struct http_exchange *x, const void *data, size_t len);
void http_stream_end(struct http_exchange *x); /* ends the exchange */

const char *http_status_text(int status); /* "Not Found" */

/* Break the connection: the reply cannot be finished. Ends the exchange. */
void http_abort(struct http_exchange *x);

/* ---- another protocol ---- */

/*
 * Answer 101 (with the headers added before) and leave HTTP: see http/tunnel.h.
 * Only for a request with `upgrade` set. Ends the exchange.
 */
struct http_tunnel *http_upgrade(struct http_exchange *x, const char *protocol,
				 const struct http_tunnel_events *events, void *data);

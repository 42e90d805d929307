/*
 * A WebSocket (RFC 6455), the server's side: whole messages both ways, with
 * back-pressure both ways. Pings, pongs, pieces and the closing are its own
 * business; a client that breaks the rules is told how and is gone.
 *
 * It ends exactly once: the owner calls websocket_close(), or on_gone() is
 * called, the last call of all. After either the pointer is dead. Callbacks come
 * from the loop only, never from within these functions.
 */
#pragma once

#include "http/exchange.h"
#include "http/ws-reader.h"

struct websocket;

struct websocket_events {
	void (*on_message)(void *data, bool text, const char *bytes, size_t len);
	void (*on_drain)(void *data); /* the queue is below its mark again */
	void (*on_gone)(void *data);
};

/* Is this a request that websocket_accept() can accept? Otherwise say what is wrong. */
must_check int websocket_check(const struct http_exchange *x, struct err *e);

/* Answer 101. Only after websocket_check(). Ends the exchange. */
struct websocket *websocket_accept(struct http_exchange *x, const struct websocket_events *events,
				   void *data);

/* One message. The bytes are written or copied. True: full, wait for on_drain(). */
bool websocket_send(struct websocket *w, bool text, const void *bytes, size_t len);

/* Stop and go on. Nothing comes between a pause and a resume. */
void websocket_pause(struct websocket *w);
void websocket_resume(struct websocket *w);

void websocket_close(struct websocket *w, enum ws_close code);

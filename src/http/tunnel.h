/*
 * A connection that left HTTP: bytes both ways, with back-pressure both ways.
 *
 * It ends exactly once: the owner calls http_tunnel_close(), or on_gone() is
 * called (the client closed or broke the connection; the last call of all).
 * After either the pointer is dead. Callbacks come from the loop only, never
 * from within these functions. What the client sent right behind its head
 * comes first.
 */
#pragma once

#include "http/exchange.h"

struct http_tunnel_events {
	/* How many of them it took. Less than all only together with a pause: then they wait. */
	size_t (*on_data)(void *data, const char *bytes, size_t len);
	void (*on_drain)(void *data); /* the queue is below its mark again; may be NULL */
	void (*on_gone)(void *data);
};

/* The bytes are written or copied. True: the queue is full, wait for on_drain(). */
bool http_tunnel_write(struct http_tunnel *t, const void *bytes, size_t len);
/* The same in two parts, which need not be in one place. */
bool http_tunnel_write_two(struct http_tunnel *t, const void *first, size_t first_len,
			   const void *second, size_t second_len);
bool http_tunnel_is_full(const struct http_tunnel *t);

/* Stop and go on. Nothing comes between a pause (outside on_data) and a resume. */
void http_tunnel_pause(struct http_tunnel *t);
void http_tunnel_resume(struct http_tunnel *t);

void http_tunnel_close(struct http_tunnel *t); /* after what is queued was sent */

/*
 * Server-sent events out of a byte stream, in whatever pieces it comes.
 *
 * Lines end in LF or CRLF; an event is the lines up to an empty one. Only `event` and `data`
 * matter to us; comments and other fields are skipped. One event has a ceiling, and a server
 * that passes it is refused.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define SSE_EVENT_MAX (16UL * 1024 * 1024)
#define SSE_NAME_SIZE 64

struct sse {
	struct buf line;
	struct buf data;
	char name[SSE_NAME_SIZE]; /* "message" if the event has none */
	bool has_data;

	/* `data` is NUL-terminated. -1 ends the reading. */
	int (*on_event)(void *arg, const char *name, const char *data, size_t len, struct err *e);
	void *arg;
};

void sse_init(struct sse *s);
void sse_done(struct sse *s);
must_check int sse_feed(struct sse *s, const char *bytes, size_t len, struct err *e);

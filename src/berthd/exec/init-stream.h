/*
 * A connection to a sandbox's init: frames in and out.
 *
 * The process that holds the guest's end may send anything, in any order: only known frames of a
 * sane length come out of here, and whether they are due is for the owner to say. Frames of the
 * types that the owner names are passed on as they come, in whatever pieces; all others whole.
 *
 * The owner closes it, also after gone(). Nothing is called after that, nor from within any
 * function here.
 */
#pragma once

#include "berthd/runtime/reactor.h"
#include "proto/frame.h"

struct init_stream;

#define FRAME_BIT(type) (1ULL << (type))

struct init_stream_events {
	uint64_t pieces; /* FRAME_BIT() of the types that come so */

	/* FRAME_HEAD bytes in front of the bytes may be overwritten. True: pause. */
	bool (*piece)(void *data, enum frame_type type, uint8_t *bytes, size_t len);
	void (*frame)(void *data, const struct frame *f); /* any other, whole */
	void (*gone)(void *data, const struct err *why);  /* NULL: the guest closed it */

	/* What had to wait went out (or, with `broken`, never will). May be NULL. */
	void (*sent)(void *data, bool broken);
};

/* Takes the descriptor. NULL if it is of no use. */
struct init_stream *init_stream_open(struct reactor *r, int fd,
				     const struct init_stream_events *events, void *data);
void init_stream_close(struct init_stream *s); /* NULL is fine */

/* What the socket does not take at once waits in memory: see init_stream_backlog(). */
void init_stream_send(struct init_stream *s, enum frame_type type, const void *data, size_t len);
size_t init_stream_backlog(const struct init_stream *s); /* in bytes of our memory; 0: all is out */

void init_stream_pause(struct init_stream *s);
void init_stream_resume(struct init_stream *s);
bool init_stream_is_paused(const struct init_stream *s);

/* When a byte last went either way, or it was resumed; by the loop's clock. */
uint64_t init_stream_moved_ms(const struct init_stream *s);

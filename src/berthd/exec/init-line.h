/*
 * A connection to a sandbox's init that carries one exec: frames in and out.
 *
 * The process that holds the guest's end may send anything, in any order: only
 * whole, known frames of a sane length come out of here, and whether they are due
 * is for the owner to say. Output is passed on as it comes, in whatever pieces.
 */
#pragma once

#include "berthd/runtime/reactor.h"
#include "proto/frame.h"

struct line;

struct line_events {
	/* FRAME_HEAD bytes in front of the bytes may be overwritten. */
	void (*output)(void *data, int stream, uint8_t *bytes, size_t len);
	void (*frame)(void *data, const struct frame *f); /* any other */
	void (*gone)(void *data, const struct err *why);  /* NULL: it closed */
	void (*sent)(void *data);                         /* nothing is on its way out any more */
};

/* Takes the descriptor. NULL if it is of no use. */
struct line *line_open(struct reactor *r, int fd, const struct line_events *events, void *data);
void line_close(struct line *l); /* no more callbacks; NULL is fine */

void line_send(struct line *l, enum frame_type type, const void *data, size_t len);
size_t line_backlog(const struct line *l); /* in bytes of our memory */
void line_pause(struct line *l);
void line_resume(struct line *l);

/*
 * One operation of a sandbox's init: the way there, a stream, and an end to init's silence.
 *
 * DATA frames are passed on as they come, in whatever pieces; all others come whole.
 * Back-pressure goes both ways. What is no frame, or too long, ends the link.
 */
#pragma once

#include "berthd/exec/init-dial.h"
#include "proto/frame.h"

struct init_link;

struct init_link_events {
	void (*opened)(void *data);                              /* connected: send */
	void (*frame)(void *data, const struct frame *f);        /* whole; not DATA, not TICK */
	bool (*bytes)(void *data, const uint8_t *b, size_t len); /* of DATA; true: pause */
	void (*drained)(void *data);                             /* send on; may be NULL */

	/* It ended, or never began: the last call of all, and the link is closed. */
	void (*failed)(void *data, const struct err *why);
};

struct init_link *init_link_new(struct reactor *r, const struct init_link_events *events,
				void *data);

/* failed() may be called before this returns: make it the last thing you do. */
void init_link_open(struct init_link *l, const struct init_dial_ask *ask);
void init_link_close(struct init_link *l); /* nothing is called after this; NULL is fine */

/* True: full; wait for drained() before more is sent. */
bool init_link_send(struct init_link *l, enum frame_type type, const void *data, size_t len);

/* Go on after bytes() said to pause. */
void init_link_resume(struct init_link *l);

/* From now on init owes us an answer, and silence is a failure. */
void init_link_expect(struct init_link *l);

/*
 * The other end of a connection, in frames, without ever waiting for it.
 *
 * At most one frame is on its way out. Until the peer has taken it nothing
 * more is read from the command, so a slow reader slows the command down.
 */
#pragma once

#include "proto/frame.h"

struct frame_conn {
	int fd;        /* non-blocking */
	struct buf in; /* not yet understood */
	uint8_t *out;  /* room for the longest frame */
	size_t out_len;
	size_t out_sent;
	int from;         /* a pipe with the rest of the frame, that no other process reads */
	size_t from_left; /* this many bytes of it */
};

void frame_conn_open(struct frame_conn *p, int fd);
void frame_conn_close(struct frame_conn *p);

/* -1 once the other end is gone. */
must_check int frame_conn_read(struct frame_conn *p);
must_check int frame_conn_flush(struct frame_conn *p);

bool frame_conn_busy(const struct frame_conn *p); /* a frame is still on its way out */

/* 1: a frame, valid until frame_conn_took(); 0: not yet; -1: this is no frame. */
must_check int frame_conn_next(struct frame_conn *p, struct frame *ret, struct err *e);
void frame_conn_took(struct frame_conn *p, const struct frame *f);

/* Where the payload of the next frame goes; then say how long it became. */
uint8_t *frame_conn_payload(struct frame_conn *p);
void frame_conn_put(struct frame_conn *p, enum frame_type type, size_t len);

/* A frame of `len` bytes that wait in a pipe: they go out without passing through us. */
void frame_conn_put_pipe(struct frame_conn *p, enum frame_type type, int fd, size_t len);

/* A whole frame made elsewhere. */
void frame_conn_put_frame(struct frame_conn *p, const struct buf *frame);

/* The last word to a peer: sent if it can be at once. It is not waited for. */
void frame_conn_refuse(struct frame_conn *p, const struct err *why);

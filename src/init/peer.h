/*
 * The other end of a connection, in frames, without ever waiting for it.
 *
 * At most one frame is on its way out. Until the peer has taken it nothing
 * more is read from the command, so a slow reader slows the command down.
 */
#pragma once

#include "proto/frame.h"

struct peer {
	int fd;        /* non-blocking */
	struct buf in; /* not yet understood */
	uint8_t *out;  /* room for the longest frame */
	size_t out_len;
	size_t out_sent;
	int from;         /* a pipe with the rest of the frame, that no other process reads */
	size_t from_left; /* this many bytes of it */
};

void peer_open(struct peer *p, int fd);
void peer_close(struct peer *p);

/* -1 once the other end is gone. */
must_check int peer_read(struct peer *p);
must_check int peer_flush(struct peer *p);

bool peer_busy(const struct peer *p); /* a frame is still on its way out */

/* 1: a frame, valid until peer_took(); 0: not yet; -1: this is no frame. */
must_check int peer_next(struct peer *p, struct frame *ret, struct err *e);
void peer_took(struct peer *p, const struct frame *f);

/* Where the payload of the next frame goes; then say how long it became. */
uint8_t *peer_payload(struct peer *p);
void peer_put(struct peer *p, enum frame_type type, size_t len);

/* A frame of `len` bytes that wait in a pipe: they go out without passing through us. */
void peer_put_pipe(struct peer *p, enum frame_type type, int fd, size_t len);

/* A whole frame made elsewhere. */
void peer_put_frame(struct peer *p, const struct buf *frame);

/* The last word to a peer: sent if it can be at once. It is not waited for. */
void peer_refuse(struct peer *p, const struct err *why);

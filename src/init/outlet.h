/*
 * The way out of what a command says: two streams, at most one connection that
 * takes them, and all that is kept until it is acknowledged.
 *
 * With no peer attached the streams are read until KEEP_MAX bytes of each are
 * kept; then the command waits. Nothing is ever dropped.
 *
 * A torrent does not pass through us: a frame's worth is moved page by page into
 * a pipe no other process can read from (the lane), so that its length can be
 * promised; the same pages are put into the kept part, and from the lane they go
 * to the socket. Where that does not work it is read and written.
 */
#pragma once

#include "init/keep.h"
#include "init/peer.h"
#include "proto/exec.h"

struct outlet_stream {
	int fd; /* the command's; -1: ended */
	enum frame_type type;
	size_t left; /* draining: what the command itself has written */
	struct keep keep;
	uint64_t acked; /* offset of the first kept byte */
	uint64_t sent;  /* offset of the next byte to be sent */
};

struct outlet {
	struct peer *peer; /* its fd is -1: none is attached */
	struct outlet_stream streams[2];
	bool fleeting; /* no acknowledgements come: what was sent is not kept */
	bool draining;
	int next; /* whose turn it is, if both have something */
	int lane[2];
	bool no_lane;
	size_t staged; /* in the lane, not yet kept or sent */
	struct outlet_stream *staged_of;
};

/* The peer stays the caller's, the descriptors become ours. */
void outlet_open(struct outlet *o, struct peer *p, int out, int err);
void outlet_close(struct outlet *o);

bool outlet_attached(const struct outlet *o);
bool outlet_wants(const struct outlet *o, int i); /* to know when stream i can be read */

/* Take from the command and pass on what can be, without waiting. -1: the peer is gone. */
must_check int outlet_take(struct outlet *o, int i);
must_check int outlet_flush(struct outlet *o);

/* The command ended: all it wrote is in the pipes now. What comes later is not its own. */
void outlet_drain(struct outlet *o);
bool outlet_is_empty(const struct outlet *o); /* and everything was sent */

must_check int outlet_ack(struct outlet *o, const struct exec_ack *a, struct err *e);
void outlet_detach(struct outlet *o); /* closes the connection */

/* On with this connection (taken, also on failure), from these offsets. */
must_check int outlet_attach(struct outlet *o, int fd, const uint64_t offset[2], struct err *e);

void outlet_discard(struct outlet *o, int i); /* read it and forget it */

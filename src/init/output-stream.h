/*
 * The way out of what a command says: two streams, at most one connection that
 * takes them, and all that is kept until it is acknowledged.
 *
 * With no peer attached the streams are read until REPLAY_MAX bytes of each are
 * kept; then the command waits. Nothing is ever dropped.
 *
 * A torrent does not pass through us: a frame's worth is moved page by page into
 * a pipe no other process can read from (the lane), so that its length can be
 * promised; the same pages are put into the kept part, and from the lane they go
 * to the socket. Where that does not work it is read and written.
 */
#pragma once

#include "init/frame-conn.h"
#include "init/replay-buffer.h"
#include "proto/exec.h"

struct output_stream_stream {
	int fd; /* the command's; -1: ended */
	enum frame_type type;
	size_t left; /* draining: what the command itself has written */
	struct replay_buffer keep;
	uint64_t acked; /* offset of the first kept byte */
	uint64_t sent;  /* offset of the next byte to be sent */
};

struct output_stream {
	struct frame_conn *peer; /* its fd is -1: none is attached */
	struct output_stream_stream streams[2];
	bool fleeting; /* no acknowledgements come: what was sent is not kept */
	bool draining;
	int next; /* whose turn it is, if both have something */
	int lane[2];
	bool no_lane;
	size_t staged; /* in the lane, not yet kept or sent */
	struct output_stream_stream *staged_of;
};

/* The peer stays the caller's, the descriptors become ours. */
void output_stream_open(struct output_stream *o, struct frame_conn *p, int out, int err);
void output_stream_close(struct output_stream *o);

bool output_stream_attached(const struct output_stream *o);
/* to know when stream i can be read */
bool output_stream_wants(const struct output_stream *o, int i);

/* Take from the command and pass on what can be, without waiting. -1: the peer is gone. */
must_check int output_stream_take(struct output_stream *o, int i);
must_check int output_stream_flush(struct output_stream *o);

/* The command ended: all it wrote is in the pipes now. What comes later is not its own. */
void output_stream_drain(struct output_stream *o);
bool output_stream_is_empty(const struct output_stream *o); /* and everything was sent */

must_check int output_stream_ack(struct output_stream *o, const struct exec_ack *a, struct err *e);
void output_stream_detach(struct output_stream *o); /* closes the connection */

/* On with this connection (taken, also on failure), from these offsets. */
must_check int output_stream_attach(struct output_stream *o, int fd, const uint64_t offset[2],
				    struct err *e);

void output_stream_discard(struct output_stream *o, int i); /* read it and forget it */

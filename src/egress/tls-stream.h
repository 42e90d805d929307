/*
 * One end of a connection: a TCP socket, with TLS over it or without. Its user
 * sees plain bytes. Reading stops while its user has paused it; what is written
 * waits in memory, so the writer looks at the backlog.
 */
#pragma once

#include <openssl/ssl.h>
#include <uv.h>

#include "lib/buf.h"
#include "lib/err.h"

#define TLS_STREAM_BACKLOG_MAX (256UL * 1024)

struct tls_stream;

struct tls_stream_events {
	void (*on_ready)(struct tls_stream *s); /* TLS stands */
	void (*on_data)(struct tls_stream *s, const char *data, size_t len);
	void (*on_end)(struct tls_stream *s); /* the peer sends no more */
	void (*on_broken)(struct tls_stream *s, const char *why);
	void (*on_drained)(struct tls_stream *s);
};

struct tls_stream {
	uv_tcp_t tcp;
	const struct tls_stream_events *events;
	void *data;
	char *read_buffer; /* shared: what is read is used at once */
	SSL *ssl;
	bool opened, closing, reading, paused;
	bool ready; /* TLS stands, or there is none */
	bool ended, ending, shut;
	size_t pieces; /* that wait in the socket's queue */
};

#define TLS_STREAM_READ_SIZE (64UL * 1024)

/* takes fd */
must_check int tls_stream_open(struct tls_stream *s, uv_loop_t *loop, int fd, struct err *e);
/* To be connected by uv_tcp_connect(). */
void tls_stream_init(struct tls_stream *s, uv_loop_t *loop);
void tls_stream_begin(struct tls_stream *s); /* read */

/* Takes `ssl`; the handshake begins. */
void tls_stream_tls(struct tls_stream *s, SSL *ssl);

/* As if it came from the peer. */
void tls_stream_feed(struct tls_stream *s, const char *data, size_t len);

void tls_stream_write(struct tls_stream *s, const char *data, size_t len);
void tls_stream_end(struct tls_stream *s); /* no more after what was written */
void tls_stream_pause(struct tls_stream *s, bool pause);
size_t tls_stream_backlog(const struct tls_stream *s);
void tls_stream_close(struct tls_stream *s, uv_close_cb closed);
/* So that the peer sees an error, and no end. What waits is dropped. */
void tls_stream_reset(struct tls_stream *s, uv_close_cb closed);

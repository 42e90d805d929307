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

#define SIDE_BACKLOG_MAX (256UL * 1024)

struct side;

struct side_events {
	void (*on_ready)(struct side *s); /* TLS stands */
	void (*on_data)(struct side *s, const char *data, size_t len);
	void (*on_end)(struct side *s); /* the peer sends no more */
	void (*on_broken)(struct side *s, const char *why);
	void (*on_drained)(struct side *s);
};

struct side {
	uv_tcp_t tcp;
	const struct side_events *events;
	void *data;
	char *read_buffer; /* shared: what is read is used at once */
	SSL *ssl;
	bool opened, closing, reading, paused;
	bool ready; /* TLS stands, or there is none */
	bool ended, ending, shut;
	size_t pieces; /* that wait in the socket's queue */
};

#define SIDE_READ_SIZE (64UL * 1024)

must_check int side_open(struct side *s, uv_loop_t *loop, int fd, struct err *e); /* takes fd */
/* To be connected by uv_tcp_connect(). */
void side_init(struct side *s, uv_loop_t *loop);
void side_begin(struct side *s); /* read */

/* Takes `ssl`; the handshake begins. */
void side_tls(struct side *s, SSL *ssl);

/* As if it came from the peer. */
void side_feed(struct side *s, const char *data, size_t len);

void side_write(struct side *s, const char *data, size_t len);
void side_end(struct side *s); /* no more after what was written */
void side_pause(struct side *s, bool pause);
size_t side_backlog(const struct side *s);
void side_close(struct side *s, uv_close_cb closed);

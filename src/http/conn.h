/*
 * One connection, for the files of this room only: a socket, a parser, and at
 * any time one exchange or one tunnel.
 *
 * Its memory ends in the close callback of its socket and nowhere else, so every
 * function here may go on using it after a callback, whatever that did. All
 * parsing happens in the read callback or in the server's ready handle:
 * functions a handler calls only change flags, write, and mark it ready.
 */
#pragma once

#include "http/parse.h"
#include "http/server.h"
#include "http/tunnel.h"

enum conn_state {
	CONN_HEAD,     /* idle, or a head is on its way */
	CONN_EXCHANGE, /* a handler has it */
	CONN_TUNNEL,
	CONN_LAST, /* the last byte is queued; input is thrown away */
	CONN_CLOSED,
	CONN_STATE_COUNT
};

enum body_state {
	BODY_UNASKED, /* no handler said it wants it */
	BODY_READ,
	BODY_PAUSED,
	BODY_DRAIN, /* no handler wants it; the reply is held back meanwhile */
	BODY_DONE,
	BODY_STATE_COUNT
};

/* How the end of a reply in pieces is told. */
enum reply_form {
	REPLY_WHOLE,   /* it is none, or has not begun */
	REPLY_CHUNKED, /* by the last chunk */
	REPLY_SIZED,   /* by its length */
	REPLY_CLOSED,  /* by the end of the connection */
};

struct http_tunnel {
	const struct http_tunnel_events *events;
	void *data;
	bool paused;
};

struct http_conn {
	uv_tcp_t tcp;
	struct http_server *server;
	struct http_conn *prev, *next;
	struct http_conn *ready_next;
	struct http_parser parser;
	struct http_exchange x;
	struct http_tunnel tunnel;
	struct buf ahead;    /* read, but not yet wanted */
	struct buf held;     /* a reply that waits for the end of its request */
	uint64_t deadline;   /* 0: none */
	uint64_t head_since; /* it waits for a request */
	size_t writes;       /* that wait in the socket's queue */
	uint64_t queued;     /* bytes ever given to the socket */
	uint64_t moved;      /* of these sent, at `moved_at` */
	uint64_t moved_at;
	uint64_t stream_left; /* of a sized reply */
	size_t drained;
	size_t came;             /* of a body, since its deadline was set */
	uint64_t whole_by;       /* a collected body must be there; 0: none is */
	uint8_t state;           /* enum conn_state */
	uint8_t body;            /* enum body_state */
	uint8_t form;            /* enum reply_form, of the exchange that is */
	uint8_t share;           /* of the exchange that is or was last */
	uint8_t counted;         /* in the server's conn_shares */
	char tag[HTTP_TAG_SIZE]; /* see http_tag() */
	bool reading, ready, full, eof;
	bool keep_alive, head_only, continue_due, shut;
};

static inline struct http_conn *conn_of(const struct http_exchange *x)
{
	return container_of(x, struct http_conn, x);
}

void conn_accept(struct http_server *server);
/* The only one that changes `state`; false: not from here, which is a bug and was logged. */
must_check bool conn_move(struct http_conn *c, enum conn_state to);
/* The only one that changes `body`, but for the head that begins another one. */
void conn_move_body(struct http_conn *c, enum body_state to);
void conn_break(struct http_conn *c);      /* close now; on_gone() follows from the loop */
void conn_check(struct http_conn *c);      /* deadlines */
void conn_resume(struct http_conn *c);     /* go on with what was read ahead */
void conn_make_ready(struct http_conn *c); /* have conn_resume() called from the loop */
void conn_set_deadline(struct http_conn *c, uint64_t ms);
void conn_await_body(struct http_conn *c); /* so much of it, by then */
bool conn_is_idle(const struct http_conn *c);
void conn_refuse(struct http_conn *c, int status, const char *reason);

/* The handler's end of an exchange: its callbacks are over. */
void conn_disown(struct http_conn *c);
/* The reply is queued: the next request, or the end. */
void conn_finish(struct http_conn *c);
/* Nothing more will be written: send what is queued, then close. */
void conn_last(struct http_conn *c);

void http_collect_free(struct http_collect *collect); /* NULL is fine */
const char *server_date(struct http_server *server);

/* Write now what the socket takes, queue a copy of the rest. True: full. */
bool conn_write(struct http_conn *c, const uv_buf_t *bufs, unsigned count);
size_t conn_backlog(const struct http_conn *c); /* bytes that are still to be sent */
size_t conn_held(const struct http_conn *c);    /* of memory, for these */

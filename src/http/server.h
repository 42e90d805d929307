/*
 * An HTTP/1.1 server on one libuv loop. It knows no route and no account.
 *
 * A program with several loops opens one server on each, at the same address
 * (SO_REUSEPORT): they share nothing. Requests on one connection are handled
 * one after the other, also when they are sent ahead. What is malformed never
 * reaches a handler: it is answered with 4xx and the connection ends.
 */
#pragma once

#include <uv.h>

#include "http/exchange.h"

#define HTTP_READ_SIZE    65536 /* one buffer for all connections of a server */
#define HTTP_AHEAD_MAX    65536 /* read ahead per connection, then reading stops */
#define HTTP_TURN_MAX     4     /* requests of one connection, then the others have theirs */
#define HTTP_SHARES       256   /* values of an exchange's `share` */
#define HTTP_REFUSING_MAX 64    /* connections past the limit that are told so at once */
#define HTTP_UNOWNED_MS   1000  /* for the next request, if many connections have no owner */
#define HTTP_DRAIN_MAX    65536 /* of a body no handler read */
#define HTTP_QUIET_S      30    /* without a byte: the kernel asks whether the client is there */
#define HTTP_LINGER_MS    2000  /* for the client to close after our last byte */
#define HTTP_OUTPUT_MARK  262144
#define HTTP_OUTPUT_TOTAL 268435456 /* of all connections of a server together */
#define HTTP_AHEAD_TOTAL  33554432
#define HTTP_BODY_TOTAL   67108864
#define HTTP_OUTPUT_MAX   67108864 /* a handler that ignores the mark ends here */

struct http_limits {         /* a zero means the default */
	size_t head;         /* 16 KiB: longer is 431 */
	size_t connections;  /* 20,000: one more is 503 */
	size_t conn_share;   /* three quarters of these, of one `share`: see http_own() */
	uint64_t head_ms;    /* 15 s, from accept or a head's first byte to its last */
	uint64_t idle_ms;    /* 75 s, between requests */
	uint64_t body_ms;    /* 60 s in which a body that is read brings no `body_least` */
	size_t body_least;   /* 1 KiB, or the body's end */
	uint64_t whole_ms;   /* 120 s, from the head to the last byte of a collected body */
	size_t body_total;   /* 64 MiB of bodies that are being collected; past it one is refused */
	size_t body_share;   /* 16 MiB of these, of one `share` */
	size_t ahead_total;  /* 32 MiB read ahead; past it only what is wanted is read */
	uint64_t stall_ms;   /* 60 s in which no queued byte could be sent */
	size_t output_mark;  /* 256 KiB: then streams and tunnels say "full" */
	size_t output_total; /* 256 MiB for all who do not read; past it, theirs break */
	size_t output_share; /* 128 MiB of these, of one `share` */
};

struct http_server {
	void *data; /* the owner's, to be set after http_server_open() */

	/* The engine's own. */
	uv_loop_t *loop;
	uv_tcp_t listener;
	uv_timer_t sweep; /* looks at every connection's deadline */
	uv_idle_t ready;  /* runs while some connection has bytes it may go on with */
	struct http_limits limits;
	http_fn on_request;
	void (*on_closed)(struct http_server *server);
	struct http_conn *connections;
	struct http_conn *ready_list;
	size_t connection_count;
	size_t conn_shares[HTTP_SHARES]; /* of these, by whose they are; 0: no owner's */
	size_t held;                     /* bytes in write queues */
	size_t held_shares[HTTP_SHARES]; /* of these, by whose they are */
	size_t ahead;                    /* bytes read ahead */
	size_t bodies;                   /* bytes of bodies that are being collected */
	size_t shares[HTTP_SHARES];      /* of these, by whose they are */
	int open_handles;
	bool closing;
	uint64_t close_by;
	char *read_buffer;
	uint64_t date_second;
	char date[40];
};

/*
 * Whether no program listens at that address. The listeners of one program share it, and
 * another program of the same user would be given a part of the connections in silence.
 */
must_check int http_server_alone(const char *address, struct err *e);

/*
 * Listen at "127.0.0.1:7070" or "[::1]:0" (a number, not a name). On failure
 * nothing is left open. The struct must not move until on_closed(). From here on
 * the program ignores SIGPIPE.
 */
must_check int http_server_open(struct http_server *server, uv_loop_t *loop,
				const char *address, const struct http_limits *limits,
				http_fn on_request, struct err *e);

int http_server_port(const struct http_server *server); /* as bound */

/* The server an exchange came in by. */
struct http_server *http_exchange_server(const struct http_exchange *x);
/* The address at the other end, without its port; "" if it is gone. */
void http_exchange_peer(const struct http_exchange *x, char *out, size_t size);

/* Break what is under way with that tag, as if its client had gone: on_gone() follows. */
void http_server_break(struct http_server *server, const char *tag);

/*
 * Stop listening, end idle connections, let exchanges finish for `grace_ms`,
 * then break what is left (on_gone). `on_closed` comes last and may be NULL.
 */
void http_server_close(struct http_server *server, uint64_t grace_ms,
		       void (*on_closed)(struct http_server *server));

/*
 * One connection of a sandbox, from its first byte to its end.
 *
 * The address it went to says which name was meant, the first bytes must agree
 * (SNI or Host), the policy decides, and only then the name is resolved and
 * dialled: by us, so what the sandbox claims gains it nothing. TLS passes as it
 * is, unless requests must be seen: then it ends here, twice.
 */
#pragma once

#include "egress/egress.h"
#include "egress/tls-stream.h"

#define PORT_HTTP  80
#define PORT_HTTPS 443

enum conn_kind {
	CONN_UNKNOWN, /* nothing came yet */
	CONN_NAMES,   /* DNS over TCP */
	CONN_RAW,     /* bytes, or TLS that is left alone */
	CONN_WEB,     /* requests that are looked at, in TLS or not */
};

/* Which follow which: see conn.c. The first three are before bytes can go to the server. */
enum conn_phase {
	CONN_FIRST,     /* the client speaks, or asks for names */
	CONN_RESOLVING, /* its name is being resolved */
	CONN_DIALLING,  /* at least one address was fit to be dialled */
	CONN_UP,        /* the server side takes bytes */
	CONN_LINGERING, /* nothing more comes; the client still gets what waits */
	CONN_CLOSED,    /* its handles are closing, and its box does not know it any more */
	CONN_PHASE_COUNT
};

struct http_filter;

struct conn {
	struct egress *egress;
	struct box *box; /* NULL: CONN_CLOSED */
	struct conn *next, **at;
	struct tls_stream client, server;
	char name[NETWORK_HOST_SIZE]; /* or the address, as text */
	uint32_t address;             /* if it was dialled by address; else 0 */
	uint16_t port;
	enum conn_kind kind;
	uint8_t phase;      /* enum conn_phase */
	bool tls;           /* it began with a ClientHello */
	bool opened;        /* its TLS ends here */
	struct buf first;   /* what came and was not yet understood */
	size_t first_sent;  /* so much of it the server has: a line that is not yet whole */
	struct buf waiting; /* for the server */
	struct http_filter *web;
	struct resolve_ask ask;
	struct resolved found;
	size_t tried;
	uv_connect_t connect;
	uv_timer_t timer;
	unsigned handles;
};

static inline bool conn_is_open(const struct conn *c)
{
	return c->phase < CONN_LINGERING;
}

/* Takes the descriptor. */
void conn_begin(struct egress *g, int fd, uint32_t from, uint32_t to, uint16_t port);
void conn_close(struct conn *c);

/* Close what the box's policy no longer allows; all of it if the box goes. */
void conns_review(struct box *b, bool all);

/* For the rooms of one kind: */
bool conn_must_see_requests(const struct conn *c); /* by the policy of now */
void conn_dial(struct conn *c);
void conn_to_server(struct conn *c, const char *data, size_t len); /* waits until it is up */
void conn_to_client(struct conn *c, const char *data, size_t len);
void conn_finish(struct conn *c); /* close once the client has what was written */
void conn_refuse(struct conn *c, const char *kind, const char *name, const char *rule);
void conn_flow(struct conn *c); /* read only what the other side takes */

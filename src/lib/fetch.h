/*
 * HTTP outward: one request at a time, and it waits. libcurl does the work and
 * is seen by fetch.c alone.
 *
 * Redirects are not followed, proxies of the environment are not used: a key
 * goes to the server it was meant for and nowhere else.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define FETCH_BODY_MAX (64UL * 1024 * 1024)
#define FETCH_HEAD_MAX (16UL * 1024)

struct fetch_request {
	const char *method; /* NULL: GET */
	const char *url;
	const char *key;    /* sent as a bearer token; NULL or "": none */
	const char *accept; /* NULL: application/json */

	const char *idempotency_key; /* NULL: none */

	/* A body from memory, or from a descriptor until its end. */
	const char *content_type;
	const void *body;
	size_t body_len;
	bool upload;
	int body_fd;
	uint64_t body_size; /* of an upload; 0: not known, sent in chunks */

	uint64_t timeout_ms; /* of the whole; 0: none, only for connecting */

	/* Called a few times a second with what went up; true: give up. May be NULL. */
	bool (*tick)(void *arg, uint64_t sent);

	/* Where an answer of that type goes, as it comes. Everything else is the reply's body. */
	const char *sink_type; /* NULL: text/event-stream */
	int (*sink)(void *arg, const char *data, size_t len, struct err *e);
	void *arg; /* for both */
};

struct fetch_reply {
	int status;
	bool streamed;   /* it went to the sink */
	struct buf body; /* buf_done() it; empty if streamed */
};

/* 0 as soon as there is an HTTP answer, whatever its status. `ret` must be zeroed. */
must_check int fetch(const struct fetch_request *q, struct fetch_reply *ret, struct err *e);
void fetch_reply_done(struct fetch_reply *r);

/* A connection that was upgraded: raw bytes both ways, never blocking. */
struct fetch_link;

/*
 * Ask for `protocol` on the request's URL. An answer other than 101 is not an error here: then
 * `*link` stays NULL and the reply holds what the server said.
 */
must_check int fetch_upgrade(const struct fetch_request *q, const char *protocol,
			     struct fetch_link **link, struct fetch_reply *ret, struct err *e);
void fetch_link_close(struct fetch_link **link);  /* for cleanup() */
int fetch_link_fd(const struct fetch_link *link); /* to poll; not to read */

/* How many bytes went; 0: not now, poll again. */
must_check int fetch_link_send(struct fetch_link *link, const void *data, size_t len, size_t *ret,
			       struct err *e);

/*
 * Appends what there is, at most about 256 KiB at once. `*ended` if no more will come. Call it
 * once before the first poll: bytes may have come together with the answer to the upgrade.
 */
must_check int fetch_link_receive(struct fetch_link *link, struct buf *in, bool *ended,
				  struct err *e);

/* A path segment or query value, with everything but letters, digits and -._~ escaped. */
void fetch_escape(struct buf *out, const char *s);

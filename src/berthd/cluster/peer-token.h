/*
 * What a request carries from one host of the cell to another: who asked the
 * first of them, proven by the cell's secret. A pass is for one request to one
 * host: its method, its whole target, both hosts' names, the time and a nonce are
 * part of the proof. A body may be a stream and is not: that no pass is taken a
 * second time, with another body or the same, is the receiver's to see to
 * (peer-token-seen.h).
 *
 * It stands in the header Berth-Peer, which only a peer may send.
 */
#pragma once

#include "core/role.h"
#include "lib/buf.h"
#include "lib/err.h"

#define PASS_HEADER   "Berth-Peer"
#define PASS_TEXT_MAX 1024
#define PASS_ID_SIZE  64

struct peer_token {
	char from[PASS_ID_SIZE], to[PASS_ID_SIZE]; /* hosts */
	char request[96];                          /* the id it has had from the start */
	char key[PASS_ID_SIZE];                    /* of whom; never the secret */
	char owner[PASS_ID_SIZE];
	enum role role;
	uint64_t at_ms; /* the cell's time when it was written */
	uint64_t nonce; /* random, never 0 */
};

struct peer_token_request {
	const char *secret; /* the cell's */
	const char *method, *path, *query;
};

void peer_token_write(const struct peer_token *p, const struct peer_token_request *rq,
		      struct buf *out);

/* ERR_DENIED if it was not written with this secret, for this request. */
must_check int peer_token_read(const char *text, const struct peer_token_request *rq,
			       struct peer_token *ret,
			       struct err *e);

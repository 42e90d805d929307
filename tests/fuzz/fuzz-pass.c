/*
 * Whatever a stranger writes is no pass; what a host wrote is read as it was
 * written, and for no other request.
 */
#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/peer-token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct peer_token_request rq = { "secret", "GET", "/v1/x", "a=b" };
	static const struct peer_token_request other = { "secret", "GET", "/v1/y", "a=b" };
	cleanup(buf_done) struct buf text = buf_make(4096), written = buf_make(4096);
	struct peer_token p = { .role = ROLE_USER,
				.from = "h1",
				.to = "h2",
				.request = "rq_1",
				.at_ms = size,
				.nonce = size + 1 };
	struct peer_token got;
	size_t len = size < sizeof(p.owner) - 1 ? size : sizeof(p.owner) - 1;
	struct err e;

	buf_add(&text, data, size < 4000 ? size : 4000);
	if (peer_token_read(buf_str(&text), &rq, &got, &e) == 0)
		abort();
	memcpy(p.owner, data, len);
	p.owner[strlen(p.owner)] = '\0';
	peer_token_write(&p, &rq, &written);
	if (peer_token_read(buf_str(&written), &rq, &got, &e) < 0 ||
	    strcmp(got.owner, p.owner) != 0 || got.role != ROLE_USER || strcmp(got.to, "h2") != 0)
		abort();
	if (got.at_ms != p.at_ms || got.nonce != p.nonce)
		abort();
	if (peer_token_read(buf_str(&written), &other, &got, &e) == 0)
		abort();
	return 0;
}

/* Whom we believe when a server says who it is: the host's own certificates. */
#pragma once

#include <openssl/ssl.h>

#include "lib/err.h"

struct trust {
	SSL_CTX *ctx;
};

/* `file`: also these; empty: none. */
must_check int trust_open(struct trust *t, const char *file, struct err *e);
void trust_close(struct trust *t);

/* A TLS client that goes on only with a server that proves to be `name`. */
must_check int trust_dial(const struct trust *t, const char *name, SSL **ret, struct err *e);

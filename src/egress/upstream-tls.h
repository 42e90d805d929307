/* Whom we believe when a server says who it is: the host's own certificates. */
#pragma once

#include <openssl/ssl.h>

#include "lib/err.h"

struct upstream_tls {
	SSL_CTX *ctx;
};

/* `file`: also these; empty: none. */
must_check int upstream_tls_open(struct upstream_tls *t, const char *file, struct err *e);
void upstream_tls_close(struct upstream_tls *t);

/* A TLS client that goes on only with a server that proves to be `name`. */
must_check int upstream_tls_dial(const struct upstream_tls *t, const char *name, SSL **ret,
				 struct err *e);

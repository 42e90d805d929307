/* What a box's opened TLS is served with: its own CA, and certificates of it. */
#pragma once

#include <openssl/ssl.h>

#include "egress/box.h"

/* A TLS server for that name, to be trusted by this box alone. */
must_check int leaf_cert_serve(struct box *b, const char *name, SSL **ret, struct err *e);
void leaf_cert_free(struct authority *a); /* NULL is fine */

/*
 * A certificate authority of one sandbox, made of a seed: who has the seed makes
 * the same key again, and nothing has to be stored.
 */
#pragma once

#include <openssl/types.h>

#include "lib/buf.h"
#include "lib/err.h"

#define CA_SEED_SIZE 65 /* 32 bytes, as hex */

struct ca {
	EVP_PKEY *key;
	X509 *cert;
};

must_check int ca_make(const char *seed, const char *sandbox, struct ca *ret, struct err *e);
void ca_done(struct ca *ca);

/* Its certificate, as it goes into a trust store, and the name it has in a directory of them. */
#define CA_HASH_SIZE 9
void ca_hash(const struct ca *ca, char out[CA_HASH_SIZE]);
must_check int ca_pem(const struct ca *ca, struct buf *out, struct err *e);

/* A certificate of this CA for that name and key. */
must_check int ca_sign(const struct ca *ca, const char *name, EVP_PKEY *key, X509 **ret,
		       struct err *e);

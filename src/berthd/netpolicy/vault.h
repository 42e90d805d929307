/* The key of this cell's secrets, read once: what is sealed and derived with it. */
#pragma once

#include "lib/aead.h"
#include "lib/ca.h"
#include "store/network.h"

struct vault {
	uint8_t key[AEAD_KEY_SIZE];
};

/* A file that is not there is made, of random bytes. */
must_check int vault_load(struct vault *v, const char *path, struct err *e);

must_check int vault_seal(const struct vault *v, const char *value, struct secret *k,
			  struct err *e);
must_check int vault_open(const struct vault *v, const struct secret *k, struct buf *value,
			  struct err *e);

/* What the CA of this sandbox is made of; and its certificate behind its hash, on a line. */
void vault_seed(const struct vault *v, const char *sandbox, char out[CA_SEED_SIZE]);
must_check int vault_trust(const struct vault *v, const char *sandbox, struct buf *out,
			   struct err *e);

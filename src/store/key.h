/* API keys: only the hash of the secret is stored. */
#pragma once

#include "core/role.h"
#include "store/store.h"

#define KEY_ID_SIZE   64
#define KEY_NAME_SIZE 64

struct key {
	char id[KEY_ID_SIZE];
	char name[KEY_NAME_SIZE];
	char owner[64];
	enum role role;
	uint64_t created_ms; /* set by the store */
	uint64_t revoked_ms; /* 0: it is valid */
};

/* ERR_CONFLICT if the id or the hash is there already. */
must_check int store_key_insert(struct store *s, const struct key *k, const char *hash,
				struct err *e);

/* ERR_UNAUTHENTICATED if there is none, or it was revoked. */
must_check int store_key_find_by_hash(struct store *s, const char *hash, struct key *ret,
				      struct err *e);

/* All of them, revoked ones too, oldest first. */
must_check int store_key_list(struct store *s, void (*on_key)(const struct key *k, void *arg),
			      void *arg, struct err *e);

/*
 * Those revoked since then, in milliseconds since 1970 by the database's clock; with 0, within the
 * last `within_ms` by that clock.
 */
must_check int store_key_list_revoked(struct store *s, uint64_t since_ms, uint64_t within_ms,
				      void (*on_key)(const struct key *k, void *arg), void *arg,
				      struct err *e);

/* Revoking again changes nothing. ERR_NOT_FOUND if there never was one. */
must_check int store_key_revoke(struct store *s, const char *id, struct key *ret, struct err *e);

/* SHA-256, as hex; and SHA-1, only because the WebSocket handshake is made of it. */
#pragma once

#include "lib/base.h"

#define HASH_HEX_SIZE  65

#define HASH_SHA1_SIZE 20

void hash_hex(const void *data, size_t len, char out[HASH_HEX_SIZE]);
void hash_sha1(const void *data, size_t len, uint8_t out[HASH_SHA1_SIZE]);

/* HMAC-SHA-256, as hex, and a comparison that takes as long whatever differs. */
void hash_mac_hex(const void *key, size_t key_len, const void *data, size_t len,
		  char out[HASH_HEX_SIZE]);
bool hash_equal(const void *a, const void *b, size_t len);

/* SHA-256 of what comes in pieces. */
struct hash;
struct hash *hash_new(void);
void hash_free(struct hash *h); /* NULL is fine */
void hash_add(struct hash *h, const void *data, size_t len);
void hash_end_hex(struct hash *h, char out[HASH_HEX_SIZE]); /* then only free it */

/* SHA-256, as hex. */
#pragma once

#include "lib/base.h"

#define HASH_HEX_SIZE 65

void hash_hex(const void *data, size_t len, char out[HASH_HEX_SIZE]);

/* HMAC-SHA-256, as hex, and a comparison that takes as long whatever differs. */
void hash_mac_hex(const void *key, size_t key_len, const void *data, size_t len,
		  char out[HASH_HEX_SIZE]);
bool hash_equal(const void *a, const void *b, size_t len);

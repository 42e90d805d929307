/* What is stored so that only who has the key can read it: AES-256-GCM, as base64. */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define AEAD_KEY_SIZE 32

/* `about` is not stored: who opens it must mean the same thing. */
must_check int aead_seal(const uint8_t key[AEAD_KEY_SIZE], const char *about, const char *text,
			 struct buf *out, struct err *e);
must_check int aead_open(const uint8_t key[AEAD_KEY_SIZE], const char *about, const char *sealed,
			 struct buf *out, struct err *e);

/* Small text words: bounded copies, numbers with units, hex, base64, UTF-8. */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

/* Copy with its NUL, or leave `to` alone and return false if it does not fit. */
must_check bool str_copy(char *to, size_t size, const char *from);
must_check bool str_copy_bytes(char *to, size_t size, const void *from, size_t len);

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* A whole decimal number, nothing before or after it. */
must_check int str_u64(const char *s, uint64_t *ret, struct err *e);

/* "512", "64k", "512m", "2g" (binary units) to bytes. */
must_check int str_size(const char *s, uint64_t *ret, struct err *e);

/* "250ms", "30s", "3m", "1h"; a bare number is seconds. To milliseconds. */
must_check int str_duration_ms(const char *s, uint64_t *ret, struct err *e);

/* Spreads names over the buckets of a table (FNV-1a). Not against chosen names. */
uint32_t str_hash(const char *s);

void str_hex(char *to, const void *data, size_t len); /* to[2 * len + 1] */

/* Bytes of the character that `data` begins with; 0 if they are none. */
size_t utf8_char_len(const void *data, size_t len);
/* How many of these bytes are whole, valid UTF-8, from the start. */
size_t utf8_valid_prefix(const void *data, size_t len);

/* True if the bytes from there on are the beginning of a character, cut off. */
bool utf8_is_cut(const void *data, size_t len);

/* The character at `s`, of which a NUL is one, too. */
struct str_char {
	size_t len;      /* in bytes */
	uint32_t number; /* the byte, if it is no UTF-8 */
	bool control;    /* it drives a terminal or turns the text around, or is no UTF-8 */
};
struct str_char str_char_at(const char *s);
bool str_has_control(const char *s);

void base64_add(struct buf *out, const void *data, size_t len);
must_check int base64_decode(const char *s, struct buf *out, struct err *e);

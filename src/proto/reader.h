/*
 * A bounded reader for wire data.
 *
 * Errors stick: after the first short read every further read yields zero, so
 * a decoder reads straight through and asks reader_done() once, at the end. All
 * bounds are checked by subtraction, in this file and nowhere else.
 */
#pragma once

#include <sys/types.h>

#include "lib/base.h"
#include "lib/strv.h"

struct reader {
	const uint8_t *pos;
	const uint8_t *end;
	bool bad;
};

struct bytes {
	const uint8_t *data;
	size_t len;
};

static inline struct reader reader_make(const void *data, size_t len)
{
	/* Nothing at NULL is a message too, and NULL + 0 is not defined in C. */
	return (struct reader){ .pos = data, .end = len > 0 ? (const uint8_t *)data + len : data };
}

struct bytes reader_bytes(struct reader *r, size_t len);
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r); /* big endian, like all numbers here */
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

/* A string of at most size - 1 bytes behind its u16 length, without a NUL in it. */
void reader_str(struct reader *r, char *to, size_t size);

/* A list of at most `max` strings, each behind its u32 length, added to `ret`. */
void reader_strv(struct reader *r, size_t max, struct strv *ret);

/* True if every read so far was within bounds and nothing is left over. */
must_check bool reader_done(const struct reader *r);

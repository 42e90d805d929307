/*
 * A growing byte buffer with a hard ceiling, always NUL-terminated.
 *
 * Appending cannot fail in the middle of the work: past the ceiling the
 * buffer keeps what fits and remembers, and buf_overflowed() is asked once.
 */
#pragma once

#include "lib/base.h"

struct buf {
	char *data;
	size_t len;
	size_t size;
	size_t max;
	bool overflow;
};

static inline struct buf buf_make(size_t max)
{
	return (struct buf){ .max = max };
}

void buf_done(struct buf *b);
void buf_clear(struct buf *b); /* empty it, keep the memory */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) printf_like(2, 3);
void buf_drop(struct buf *b, size_t len); /* the first `len` bytes */
bool buf_overflowed(const struct buf *b);
const char *buf_str(const struct buf *b); /* never NULL */

#include "lib/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

/* Make room for `more` bytes and the NUL. False past the ceiling. */
static bool buf_reserve(struct buf *b, size_t more)
{
	size_t size = b->size ? b->size : 64;

	if (b->overflow || more >= b->max - b->len) {
		b->overflow = true;
		return false;
	}
	while (size <= b->len + more)
		size *= 2;
	if (size == b->size)
		return true;
	b->data = xrealloc(b->data, size);
	b->size = size;
	return true;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->overflow = false;
	if (b->data)
		b->data[0] = '\0';
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	if (!buf_reserve(b, len))
		return;
	if (len > 0) /* `data` of nothing may be NULL */
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_drop(struct buf *b, size_t len)
{
	if (len == 0)
		return;
	memmove(b->data, b->data + len, b->len - len + 1);
	b->len -= len;
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !buf_reserve(b, (size_t)n))
		return;

	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

bool buf_overflowed(const struct buf *b)
{
	return b->overflow;
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

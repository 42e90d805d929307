#include "proto/writer.h"

#include <string.h>

static void writer_number(struct buf *out, uint64_t n, size_t width)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < width; i++)
		bytes[i] = (uint8_t)(n >> (8 * (width - 1 - i)));
	buf_add(out, bytes, width);
}

void writer_u8(struct buf *out, uint8_t n)
{
	writer_number(out, n, 1);
}

void writer_u16(struct buf *out, uint16_t n)
{
	writer_number(out, n, 2);
}

void writer_u32(struct buf *out, uint32_t n)
{
	writer_number(out, n, 4);
}

void writer_u64(struct buf *out, uint64_t n)
{
	writer_number(out, n, 8);
}

void writer_str(struct buf *out, const char *s)
{
	size_t len = strnlen(s, UINT16_MAX);

	writer_u16(out, (uint16_t)len);
	buf_add(out, s, len);
}

void writer_strv(struct buf *out, const struct strv *v)
{
	writer_u32(out, (uint32_t)v->len);
	for (size_t i = 0; i < v->len; i++) {
		size_t len = strlen(v->items[i]);

		writer_u32(out, (uint32_t)len);
		buf_add(out, v->items[i], len);
	}
}

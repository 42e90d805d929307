#include "proto/reader.h"

#include <string.h>

struct bytes reader_bytes(struct reader *r, size_t len)
{
	struct bytes b = { .data = r->pos, .len = len };

	if (r->bad || len > (size_t)(r->end - r->pos)) {
		r->bad = true;
		return (struct bytes){ 0 };
	}
	r->pos += len;
	return b;
}

uint8_t reader_u8(struct reader *r)
{
	struct bytes b = reader_bytes(r, 1);

	return b.data ? b.data[0] : 0;
}

static uint64_t reader_number(struct reader *r, size_t width)
{
	struct bytes b = reader_bytes(r, width);
	uint64_t n = 0;

	for (size_t i = 0; i < b.len; i++)
		n = n << 8 | b.data[i];
	return n;
}

uint16_t reader_u16(struct reader *r)
{
	return (uint16_t)reader_number(r, 2);
}

uint32_t reader_u32(struct reader *r)
{
	return (uint32_t)reader_number(r, 4);
}

uint64_t reader_u64(struct reader *r)
{
	return reader_number(r, 8);
}

void reader_str(struct reader *r, char *to, size_t size)
{
	struct bytes b = reader_bytes(r, reader_u16(r));

	to[0] = '\0';
	if (r->bad || b.len >= size || memchr(b.data, '\0', b.len)) {
		r->bad = true;
		return;
	}
	memcpy(to, b.data, b.len);
	to[b.len] = '\0';
}

void reader_strv(struct reader *r, size_t max, struct strv *ret)
{
	uint32_t count = reader_u32(r);

	if (count > max)
		r->bad = true;
	for (uint32_t i = 0; i < count && !r->bad; i++) {
		struct bytes b = reader_bytes(r, reader_u32(r));

		if (r->bad || memchr(b.data, '\0', b.len))
			r->bad = true;
		else
			strv_addf(ret, "%.*s", (int)b.len, (const char *)b.data);
	}
}

bool reader_done(const struct reader *r)
{
	return !r->bad && r->pos == r->end;
}

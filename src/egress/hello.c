#include "egress/hello.h"

#include <ctype.h>

#define RECORD_HANDSHAKE    22
#define HANDSHAKE_HELLO     1
#define EXTENSION_NAME      0
#define NAME_IS_HOST        0
#define RECORD_HEAD         5
#define RANDOM_AND_VERSIONS 34

static struct reader inner(struct reader *r, size_t len)
{
	struct bytes b = reader_bytes(r, len);

	return reader_make(b.data, r->bad ? 0 : b.len);
}

static bool read_server_name(struct reader *r, char name[HELLO_NAME_SIZE])
{
	struct reader list = inner(r, reader_u16(r));
	struct bytes b;

	if (reader_u8(&list) != NAME_IS_HOST)
		return false;
	b = reader_bytes(&list, reader_u16(&list));
	if (list.bad || list.pos != list.end || b.len == 0 || b.len >= HELLO_NAME_SIZE || name[0])
		return false; /* two names: whom the server hears is not ours to guess */
	for (size_t i = 0; i < b.len; i++)
		if (!isgraph(b.data[i]))
			return false;
	for (size_t i = 0; i < b.len; i++)
		name[i] = (char)tolower(b.data[i]);
	name[b.len] = '\0';
	return true;
}

static bool read_extensions(struct reader *r, char name[HELLO_NAME_SIZE])
{
	while (!r->bad && r->pos < r->end) {
		uint16_t type = reader_u16(r);
		struct reader body = inner(r, reader_u16(r));

		if (!r->bad && type == EXTENSION_NAME && !read_server_name(&body, name))
			return false;
	}
	return !r->bad;
}

static bool read_body(struct reader *r, char name[HELLO_NAME_SIZE])
{
	struct reader extensions;

	(void)reader_bytes(r, RANDOM_AND_VERSIONS);
	(void)reader_bytes(r, reader_u8(r));  /* session */
	(void)reader_bytes(r, reader_u16(r)); /* ciphers */
	(void)reader_bytes(r, reader_u8(r));  /* compressions */
	if (!r->bad && r->pos == r->end)
		return true;
	extensions = inner(r, reader_u16(r));
	return !r->bad && read_extensions(&extensions, name);
}

enum hello hello_read(struct bytes data, char name[HELLO_NAME_SIZE])
{
	struct reader r = reader_make(data.data, data.len);
	struct reader body;
	uint16_t len;

	name[0] = '\0';
	if (data.len > 0 && data.data[0] != RECORD_HANDSHAKE)
		return HELLO_BAD;
	if (data.len < RECORD_HEAD)
		return HELLO_MORE;
	(void)reader_u8(&r);
	if (reader_u8(&r) != 3)
		return HELLO_BAD;
	(void)reader_u8(&r);
	len = reader_u16(&r);
	if (len < 4 || len > HELLO_MAX - RECORD_HEAD)
		return HELLO_BAD;
	if (data.len - RECORD_HEAD < len)
		return HELLO_MORE;
	body = inner(&r, len);
	if (reader_u8(&body) != HANDSHAKE_HELLO)
		return HELLO_BAD;
	len = (uint16_t)(reader_u8(&body) << 8); /* of its three bytes of length the first is 0 */
	if (len != 0)
		return HELLO_BAD;
	body = inner(&body, reader_u16(&body));
	return body.pos != body.end && read_body(&body, name) ? HELLO_READ : HELLO_BAD;
}

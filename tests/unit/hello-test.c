/* The first message of a TLS client, byte by byte: it decides where a connection may go. */
#include "egress/hello.h"

#include "lib/buf.h"
#include "proto/writer.h"
#include "test.h"

#define HEAD 5 /* of a record */

struct sample {
	const char *name;    /* of the host; NULL: no extensions at all */
	unsigned names;      /* how often the extension is there */
	uint8_t kind;        /* of the name; 0 is a host */
	unsigned tail;       /* bytes after the name, in its list */
	unsigned session;    /* bytes */
	bool others;         /* extensions before and after */
	uint16_t short_list; /* the length of the name, if it lies */
	unsigned long_list;  /* by how much the length of the list lies */
};

static void add_zeros(struct buf *b, size_t n)
{
	while (n-- > 0)
		writer_u8(b, 0x41);
}

static void add_name(struct buf *b, const struct sample *s)
{
	size_t n = strlen(s->name);

	writer_u16(b, 0); /* the server's name */
	writer_u16(b, (uint16_t)(n + 5 + s->tail));
	writer_u16(b, (uint16_t)(n + 3 + s->tail + s->long_list));
	writer_u8(b, s->kind);
	writer_u16(b, s->short_list ? s->short_list : (uint16_t)n);
	buf_add(b, s->name, n);
	add_zeros(b, s->tail);
}

static void add_other(struct buf *b, uint16_t type)
{
	writer_u16(b, type);
	writer_u16(b, 3);
	add_zeros(b, 3);
}

/* The whole record. */
static struct buf make(const struct sample *s)
{
	struct buf out = buf_make(20000);
	cleanup(buf_done) struct buf body = buf_make(20000);
	cleanup(buf_done) struct buf extensions = buf_make(20000);

	add_zeros(&body, 34);
	writer_u8(&body, (uint8_t)s->session);
	add_zeros(&body, s->session);
	writer_u16(&body, 4);
	add_zeros(&body, 4);
	writer_u8(&body, 1);
	add_zeros(&body, 1);
	if (s->others)
		add_other(&extensions, 10);
	for (unsigned i = 0; i < s->names; i++)
		add_name(&extensions, s);
	if (s->others)
		add_other(&extensions, 256); /* its low byte is that of a name */
	if (s->name) {
		writer_u16(&body, (uint16_t)extensions.len);
		buf_add(&body, extensions.data, extensions.len);
	}
	writer_u8(&out, 22);
	writer_u8(&out, 3);
	writer_u8(&out, 1);
	writer_u16(&out, (uint16_t)(body.len + 4));
	writer_u8(&out, 1);
	writer_u8(&out, 0);
	writer_u16(&out, (uint16_t)body.len);
	buf_add(&out, body.data, body.len);
	return out;
}

static enum hello read_all(const struct buf *b, char name[HELLO_NAME_SIZE])
{
	memset(name, 'x', HELLO_NAME_SIZE);
	return hello_read((struct bytes){ (const uint8_t *)b->data, b->len }, name);
}

static void reads(struct sample s, const char *want)
{
	cleanup(buf_done) struct buf b = make(&s);
	char name[HELLO_NAME_SIZE];

	CHECK_INT(read_all(&b, name), HELLO_READ);
	CHECK_STR(name, want);
}

static void refuses(struct sample s)
{
	cleanup(buf_done) struct buf b = make(&s);
	char name[HELLO_NAME_SIZE];

	CHECK_INT(read_all(&b, name), HELLO_BAD);
}

TEST(the_name_is_read_in_small_letters)
{
	reads((struct sample){ .name = "API.example.com", .names = 1 }, "api.example.com");
	reads((struct sample){ .name = "a", .names = 1 }, "a");
	reads((struct sample){ .name = "!~", .names = 1 }, "!~");
	reads((struct sample){ .name = "a.example.com", .names = 1, .session = 32, .others = true },
	      "a.example.com");
}

TEST(a_client_may_name_none)
{
	reads((struct sample){ .name = NULL }, "");
	reads((struct sample){ .name = "x", .names = 0 }, "");
	reads((struct sample){ .name = "x", .names = 0, .others = true }, "");
}

TEST(a_name_has_a_longest)
{
	char longest[HELLO_NAME_SIZE + 1];

	memset(longest, 'a', sizeof(longest));
	longest[HELLO_NAME_SIZE - 1] = '\0';
	reads((struct sample){ .name = longest, .names = 1 }, longest);
	longest[HELLO_NAME_SIZE - 1] = 'a';
	longest[HELLO_NAME_SIZE] = '\0';
	refuses((struct sample){ .name = longest, .names = 1 });
}

TEST(what_two_readers_may_read_differently_is_refused)
{
	refuses((struct sample){ .name = "a.example.com", .names = 2 });
	refuses((struct sample){ .name = "a.example.com", .names = 1, .kind = 1 });
	refuses((struct sample){ .name = "a.example.com", .names = 1, .tail = 1 });
	refuses((struct sample){ .name = "a.example.com", .names = 1, .short_list = 12 });
	refuses((struct sample){ .name = "a.example.com", .names = 1, .short_list = 14 });
	refuses((struct sample){ .name = "a.example.com", .names = 1, .long_list = 1 });
	refuses((struct sample){ .name = "", .names = 1 });
	refuses((struct sample){ .name = "a b", .names = 1 });
	refuses((struct sample){ .name = " a", .names = 1 });
	refuses((struct sample){ .name = "a\x7f", .names = 1 });
	refuses((struct sample){ .name = "a\xc3\xa4", .names = 1 });
}

TEST(a_part_of_it_is_not_yet_one)
{
	struct sample s = { .name = "a.example.com", .names = 1, .others = true };
	cleanup(buf_done) struct buf b = make(&s);
	char name[HELLO_NAME_SIZE];

	for (size_t len = 0; len < b.len; len++) {
		CHECK_INT(hello_read((struct bytes){ (uint8_t *)b.data, len }, name), HELLO_MORE);
		CHECK_STR(name, "");
	}
	buf_adds(&b, "more"); /* what follows the record is not ours yet */
	CHECK_INT(read_all(&b, name), HELLO_READ);
	CHECK_STR(name, "a.example.com");
}

/* One byte that is another: at which place, and what comes of it. */
TEST(what_is_no_hello_is_refused_at_once)
{
	static const struct {
		size_t at, given;
		uint8_t byte;
		enum hello want;
	} rows[] = {
		{ 0, 1, 23, HELLO_BAD },
		{ 0, 1, 21, HELLO_BAD },
		{ 1, 5, 2, HELLO_BAD },
		{ 1, 5, 4, HELLO_BAD },
		{ 2, 0, 9, HELLO_READ }, /* the oldest version it may say */
		{ 5, 0, 2, HELLO_BAD },
		{ 5, 0, 0, HELLO_BAD },
		{ 6, 0, 1, HELLO_BAD },
		{ 7, 0, 0xff, HELLO_BAD },
		{ 8, 0, 0, HELLO_BAD },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		struct sample s = { .name = "a.example.com", .names = 1 };
		cleanup(buf_done) struct buf b = make(&s);
		char name[HELLO_NAME_SIZE];

		b.data[rows[i].at] = (char)rows[i].byte;
		b.len = rows[i].given ? rows[i].given : b.len;
		CHECK_INT(read_all(&b, name), rows[i].want);
	}
}

static enum hello with_length(size_t len)
{
	uint8_t head[HEAD] = { 22, 3, 1, (uint8_t)(len >> 8), (uint8_t)len };
	char name[HELLO_NAME_SIZE];

	return hello_read((struct bytes){ head, sizeof(head) }, name);
}

TEST(a_record_has_a_shortest_and_a_longest)
{
	CHECK_INT(with_length(0), HELLO_BAD);
	CHECK_INT(with_length(3), HELLO_BAD);
	CHECK_INT(with_length(4), HELLO_MORE);
	CHECK_INT(with_length(16384), HELLO_MORE);
	CHECK_INT(with_length(16385), HELLO_BAD);
	CHECK_INT(with_length(65535), HELLO_BAD);
}

/* Every length inside of it, made shorter by one: nothing may be read past its end. */
TEST(a_body_that_ends_early_is_refused)
{
	struct sample s = { .name = "a.example.com", .names = 1, .session = 3, .others = true };
	cleanup(buf_done) struct buf b = make(&s);
	size_t body = b.len - HEAD - 4;
	/* 34, session 1 + 3, ciphers 2 + 4, compressions 1 + 1: extensions may be missing */
	size_t without = 34 + 4 + 6 + 2;

	for (size_t len = 0; len < body; len++) {
		char name[HELLO_NAME_SIZE];

		b.data[HEAD + 2] = (char)(len >> 8);
		b.data[HEAD + 3] = (char)len;
		CHECK_INT(read_all(&b, name), len == without ? HELLO_READ : HELLO_BAD);
	}
}

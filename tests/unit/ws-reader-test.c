#include "http/ws-reader.h"

#include <stdlib.h>

#include "test.h"

#define MASK "\x11\x22\x33\x44"

/* A client's frame. `first` is the whole first byte. */
static void add(struct buf *out, unsigned first, const void *payload, size_t len)
{
	static const uint8_t mask[] = MASK;
	uint8_t head[WS_HEAD_MAX];
	size_t n = ws_head(head, WS_OP_BINARY, len);

	head[0] = (uint8_t)first;
	head[1] |= 0x80;
	buf_add(out, head, n);
	buf_add(out, mask, 4);
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = ((const uint8_t *)payload)[i] ^ mask[i & 3];

		buf_add(out, &byte, 1);
	}
}

/* Everything it says about these bytes, in pieces of `step`. */
static void judge(const struct buf *wire, size_t step, struct buf *said)
{
	static const char *const names[] = { "", "text", "binary", "ping", "pong", "close", "bad" };
	struct ws_reader r;
	enum ws_event event = WS_NOTHING;

	ws_reader_init(&r);
	for (size_t at = 0; at < wire->len && event != WS_BAD;) {
		size_t used, len = wire->len - at < step ? wire->len - at : step;
		char *copy = malloc(len ? len : 1); /* so that reading past it is seen */

		memcpy(copy, wire->data + at, len);
		event = ws_reader_take(&r, copy, len, &used);
		free(copy);
		CHECK(used <= len && (event != WS_NOTHING || used == len));
		at += used;
		if (event == WS_TEXT || event == WS_BINARY)
			buf_addf(said, "[%s:%zu:%.20s]", names[event], r.message.len,
				 buf_str(&r.message));
		else if (event == WS_CLOSE || event == WS_BAD)
			buf_addf(said, "[%s:%u]", names[event], r.close_code);
		else if (event != WS_NOTHING)
			buf_addf(said, "[%s:%s]", names[event], buf_str(&r.control));
	}
	ws_reader_done(&r);
}

static void check(const struct buf *wire, const char *want)
{
	static const size_t steps[] = { 1, 3, 7, 1 << 20 };

	for (size_t i = 0; i < array_len(steps); i++) {
		cleanup(buf_done) struct buf said = buf_make(4096);

		judge(wire, steps[i], &said);
		CHECK_STR(buf_str(&said), want);
	}
}

TEST(messages_come_out_however_they_are_cut)
{
	cleanup(buf_done) struct buf wire = buf_make(1 << 20);
	static char long_text[70000];

	memset(long_text, 'y', sizeof(long_text));
	add(&wire, 0x81, "gr\xc3\xbcn", 5);
	add(&wire, 0x82, "\0\xff", 2);
	add(&wire, 0x82, "", 0);
	add(&wire, 0x01, "gr\xc3", 3); /* a character cut by a piece is no mistake */
	add(&wire, 0x89, "now", 3);    /* a ping between the pieces neither */
	add(&wire, 0x00, "", 0);
	add(&wire, 0x80, "\xbcn", 2);
	add(&wire, 0x82, long_text, 126);
	add(&wire, 0x82, long_text, sizeof(long_text));
	add(&wire, 0x8a, "", 0);
	add(&wire, 0x88, "\x03\xe8"
			 "bye",
	    5);
	check(&wire, "[text:5:gr\xc3\xbcn][binary:2:][binary:0:][ping:now][text:5:gr\xc3\xbcn]"
		     "[binary:126:yyyyyyyyyyyyyyyyyyyy][binary:70000:yyyyyyyyyyyyyyyyyyyy]"
		     "[pong:][close:1000]");
}

TEST(what_the_standard_forbids_is_refused)
{
	static const struct {
		const char *wire;
		size_t len;
		const char *want;
	} rows[] = {
#define ROW(wire, want) { wire, sizeof(wire) - 1, want }
		ROW("\x82\x01x", "[bad:1002]"),                         /* not masked */
		ROW("\xc2\x81" MASK "x", "[bad:1002]"),                 /* a reserved bit */
		ROW("\x83\x81" MASK "x", "[bad:1002]"),                 /* an unknown opcode */
		ROW("\x8b\x81" MASK "x", "[bad:1002]"),                 /* an unknown control */
		ROW("\x09\x80" MASK, "[bad:1002]"),                     /* a ping in pieces */
		ROW("\x89\xfe\x00\x7e" MASK, "[bad:1002]"),             /* a long ping */
		ROW("\x80\x80" MASK, "[bad:1002]"),                     /* goes on with nothing */
		ROW("\x02\x80" MASK "\x82\x80" MASK, "[bad:1002]"),     /* a message in a message */
		ROW("\x82\xfe\x00\x7d" MASK, "[bad:1002]"),             /* 125 in two bytes */
		ROW("\x82\xff\0\0\0\0\0\0\xff\xff" MASK, "[bad:1002]"), /* 65535 in eight */
		ROW("\x82\xff\x80\0\0\0\0\1\0\0" MASK, "[bad:1002]"),   /* the highest bit */
		ROW("\x82\xff\0\0\0\0\0\4\0\1" MASK, "[bad:1009]"),     /* one over the limit */
		ROW("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" MASK, "[bad:1009]"),
		ROW("\x88\x80" MASK, "[close:1005]"), /* a close may be empty */
#undef ROW
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		struct buf wire = { .data = (char *)rows[i].wire, .len = rows[i].len };

		check(&wire, rows[i].want);
	}
}

TEST(closes_and_texts_are_looked_into)
{
	static const struct {
		unsigned first;
		const char *payload;
		size_t len;
		const char *want;
	} rows[] = {
		{ 0x88, "\x03", 1, "[bad:1002]" },
		{ 0x88, "\x03\xed", 2, "[bad:1002]" }, /* 1005 is never sent */
		{ 0x88, "\x00\x01", 2, "[bad:1002]" },
		{ 0x88, "\x0f\xa0", 2, "[close:4000]" },
		{ 0x88, "\x03\xe8\xff", 3, "[bad:1007]" },
		{ 0x81, "\xff", 1, "[bad:1007]" },
		{ 0x81, "\xc3", 1, "[bad:1007]" }, /* cut at the end of all */
		{ 0x81, "\xed\xa0\x80", 3, "[bad:1007]" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		cleanup(buf_done) struct buf wire = buf_make(256);

		add(&wire, rows[i].first, rows[i].payload, rows[i].len);
		check(&wire, rows[i].want);
	}
}

TEST(pieces_cannot_grow_past_the_limit)
{
	cleanup(buf_done) struct buf wire = buf_make(4 << 20);
	static char half[WS_MESSAGE_MAX / 2];

	add(&wire, 0x02, half, sizeof(half));
	add(&wire, 0x00, half, sizeof(half));
	add(&wire, 0x00, "x", 1);
	check(&wire, "[bad:1009]");
}

/* The code of a close that a client may send, and those beside them. */
TEST(a_close_has_a_code_that_may_be_sent)
{
	static const struct {
		unsigned code;
		bool ok;
	} rows[] = {
		{ 999, false },
		{ 1000, true },
		{ 1003, true },
		{ 1004, false },
		{ 1006, false },
		{ 1007, true },
		{ 1014, true },
		{ 1015, false },
		{ 2999, false },
		{ 3000, true },
		{ 4999, true },
		{ 5000, false },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		uint8_t wire[] = { 0x88, 0x82, 0, 0, 0, 0, (uint8_t)(rows[i].code >> 8),
				   (uint8_t)rows[i].code };
		struct ws_reader r;
		size_t used;

		ws_reader_init(&r);
		CHECK_INT(ws_reader_take(&r, wire, sizeof(wire), &used) != WS_BAD, rows[i].ok);
		ws_reader_done(&r);
	}
}

TEST(a_head_is_as_short_as_it_can_be)
{
	static const struct {
		size_t len, head;
	} rows[] = { { 0, 2 }, { 125, 2 }, { 126, 4 }, { 65535, 4 }, { 65536, 10 } };

	for (size_t i = 0; i < array_len(rows); i++) {
		uint8_t head[WS_HEAD_MAX];

		CHECK_INT(ws_head(head, WS_OP_BINARY, rows[i].len), rows[i].head);
	}
}

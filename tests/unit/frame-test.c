#include "proto/frame.h"

#include "lib/errno-map.h"
#include "proto/files.h"
#include "proto/writer.h"
#include "test.h"

static struct bytes wire_of(const struct buf *b)
{
	return (struct bytes){ (const uint8_t *)b->data, b->len };
}

TEST(a_frame_comes_out_as_it_went_in)
{
	cleanup(buf_done) struct buf b = buf_make(1024);
	struct frame f;
	struct err e;

	frame_add(&b, FRAME_STDOUT, "hello", 5);
	frame_add(&b, FRAME_STDIN_END, NULL, 0);
	CHECK_INT(frame_next(wire_of(&b), &f, &e), FRAME_HEAD + 5);
	CHECK_INT(f.type, FRAME_STDOUT);
	CHECK_INT(f.payload.len, 5);
	buf_drop(&b, FRAME_HEAD + 5);
	CHECK_INT(frame_next(wire_of(&b), &f, &e), FRAME_HEAD);
	CHECK_INT(f.type, FRAME_STDIN_END);
}

TEST(a_frame_that_is_not_whole_waits)
{
	cleanup(buf_done) struct buf b = buf_make(1024);
	struct frame f;
	struct err e;

	frame_add(&b, FRAME_STDOUT, "hello", 5);
	for (size_t len = 0; len < b.len; len++)
		CHECK_INT(frame_next((struct bytes){ (uint8_t *)b.data, len }, &f, &e), 0);
}

TEST(a_lying_length_or_type_is_refused_at_once)
{
	static const uint8_t too_long[] = { FRAME_STDOUT, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t no_type[] = { 0, 0, 0, 0, 0 };
	static const uint8_t new_type[] = { FRAME_TYPE_END, 0, 0, 0, 0 };
	struct frame f;
	struct err e;

	CHECK(frame_next((struct bytes){ too_long, 5 }, &f, &e) < 0);
	CHECK_INT(e.code, ERR_TOO_LARGE);
	CHECK(frame_next((struct bytes){ no_type, 5 }, &f, &e) < 0);
	CHECK(frame_next((struct bytes){ new_type, 5 }, &f, &e) < 0);
}

TEST(every_type_that_has_a_name_is_taken)
{
	for (int type = FRAME_HELLO; type < FRAME_TYPE_END; type++) {
		const uint8_t wire[] = { (uint8_t)type, 0, 0, 0, 0 };
		struct frame f;
		struct err e;

		CHECK_INT(frame_next((struct bytes){ wire, 5 }, &f, &e), FRAME_HEAD);
		CHECK_INT(f.type, type);
	}
}

TEST(an_error_keeps_its_code_and_words)
{
	cleanup(buf_done) struct buf b = buf_make(1024);
	struct err e = { 0 }, back = { 0 };
	struct frame f;

	err_set(&e, ERR_NOT_FOUND, "no such command: %s", "x");
	err_fix(&e, "Try y.");
	frame_add_error(&b, &e);
	CHECK(frame_next(wire_of(&b), &f, &e) > 0);
	frame_error(&f, &back);
	CHECK_INT(back.code, ERR_NOT_FOUND);
	CHECK_STR(back.msg, "no such command: x");
	CHECK_STR(back.fix, "Try y.");

	f.payload.len = 3;
	frame_error(&f, &back);
	CHECK_INT(back.code, ERR_INTERNAL);

	buf_clear(&b);
	err_set(&e, ERR_UNAUTHENTICATED, "this needs an API key");
	frame_add_error(&b, &e);
	CHECK(frame_next(wire_of(&b), &f, &e) > 0);
	frame_error(&f, &back);
	CHECK_INT(back.code, ERR_INTERNAL); /* a guest may have said it */
}

/* As init sends it: a number for the code, then words. */
static void said_by_guest(uint32_t code, const char *reason, struct err *ret)
{
	cleanup(buf_done) struct buf payload = buf_make(1024), b = buf_make(1024);
	struct frame f;
	struct err e;

	writer_u32(&payload, code);
	writer_str(&payload, "words");
	writer_str(&payload, "Run this on the host.");
	if (reason)
		writer_str(&payload, reason);
	frame_add(&b, FRAME_ERROR, payload.data, payload.len);
	CHECK(frame_next(wire_of(&b), &f, &e) > 0);
	*ret = (struct err){ 0 };
	frame_guest_error(&f, ret);
	CHECK_STR(ret->fix, ""); /* never the guest's to say */
}

TEST(a_guest_says_no_code_that_its_init_does_not)
{
	struct err e;

	for (uint32_t code = 0; code < ERR_COUNT + 3; code++) {
		bool known = code != ERR_NONE && code != ERR_UNAUTHENTICATED && code < ERR_COUNT;
		cleanup(buf_done) struct buf wire = buf_make(1024);

		said_by_guest(code, NULL, &e);
		CHECK_INT(e.code, known ? code : ERR_INTERNAL);
		CHECK_INT(strcmp(e.msg, "words") == 0, known);
		writer_u32(&wire, code);
		writer_str(&wire, "");
		writer_str(&wire, "words");
		file_failed_decode((struct bytes){ (void *)wire.data, wire.len }, &e);
		CHECK_INT(e.code, known ? code : ERR_INTERNAL);
		CHECK_INT(strcmp(e.msg, "words") == 0, known);
	}
}

TEST(a_guest_says_no_reason_that_its_init_does_not)
{
	static const char *const good[] = { REASON_NO_COMMAND, REASON_CANNOT_RUN,
					    REASON_LEFT_UNKNOWN };
	static const char *const bad[] = { REASON_OPTIONS_DIFFER, REASON_NOT_TAKEN,
					   REASON_NOT_REACHED };
	struct err e;

	for (size_t i = 0; i < array_len(good); i++) {
		said_by_guest(ERR_CONFLICT, good[i], &e);
		CHECK(e.code == ERR_CONFLICT && e.reason && strcmp(e.reason, good[i]) == 0);
	}
	for (size_t i = 0; i < array_len(bad); i++) {
		said_by_guest(ERR_CONFLICT, bad[i], &e);
		CHECK(e.code == ERR_INTERNAL && !e.reason);
	}
	said_by_guest(ERR_CONFLICT, "cleanup_pending", &e);
	CHECK(e.code == ERR_CONFLICT && !e.reason);
}

TEST(a_number_is_one_number)
{
	static const uint8_t wire[] = { FRAME_STDOUT, 0, 0, 0, 4, 1, 2, 3, 4 };
	cleanup(buf_done) struct buf b = buf_make(100);
	uint32_t n = 0;
	struct frame f;
	struct err e;

	frame_add_u32(&b, FRAME_STDOUT, 0x01020304);
	CHECK_INT(b.len, sizeof(wire));
	CHECK(memcmp(b.data, wire, sizeof(wire)) == 0);
	CHECK_INT(frame_next(wire_of(&b), &f, &e), sizeof(wire));
	CHECK_OK(frame_u32(&f, &n, &e), &e);
	CHECK_INT(n, 0x01020304);
	f.payload.len = 3;
	CHECK_ERR(frame_u32(&f, &n, &e), &e, ERR_INVALID);
	CHECK_INT(n, 0x01020304);
}

TEST(the_longest_frame_is_taken)
{
	static uint8_t wire[FRAME_HEAD + FRAME_PAYLOAD_MAX];
	struct frame f;
	struct err e;

	frame_head(wire, FRAME_TYPE_END - 1, FRAME_PAYLOAD_MAX);
	CHECK_INT(frame_next((struct bytes){ wire, sizeof(wire) }, &f, &e), sizeof(wire));
	CHECK_INT(f.payload.len, FRAME_PAYLOAD_MAX);
	CHECK_INT(f.type, FRAME_TYPE_END - 1);
	for (int i = 0; i < 4; i++)
		wire[1 + i] = (uint8_t)((FRAME_PAYLOAD_MAX + 1) >> (24 - 8 * i));
	CHECK_INT(frame_next((struct bytes){ wire, sizeof(wire) }, &f, &e), -1);
	CHECK_INT(e.code, ERR_TOO_LARGE);
}

TEST(an_unknown_type_is_named)
{
	static const uint8_t wire[] = { FRAME_TYPE_END, 0, 0, 0, 0 };
	struct frame f;
	struct err e;

	CHECK_INT(frame_next((struct bytes){ wire, 5 }, &f, &e), -1);
	CHECK_INT(e.code, ERR_INVALID);
}

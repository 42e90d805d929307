#include "egress/redact.h"

#include "test.h"

/* In pieces of `step` bytes. */
static void feed(const char *text, size_t step, const char *want)
{
	cleanup(buf_done) struct buf out = buf_make(4096);
	struct redact r;

	redact_init(&r);
	redact_add(&r, "secret-one");
	redact_add(&r, "secret-two-longer");
	redact_add(&r, "abc"); /* too short to be one */
	for (size_t at = 0; at < strlen(text); at += step) {
		size_t left = strlen(text) - at;

		redact_feed(&r, text + at, left < step ? left : step, false, &out);
	}
	redact_feed(&r, NULL, 0, true, &out);
	CHECK_STR(buf_str(&out), want);
	redact_done(&r);
}

TEST(whatever_the_pieces)
{
	for (size_t step = 1; step < 40; step++) {
		feed("abc secret-one.", step, "abc **********.");
		feed("secret-two-longersecret-onesecret-on", step,
		     "***************************secret-on");
		feed("nothing here, secret-tw", step, "nothing here, secret-tw");
		feed("secret-secret-one", step, "secret-**********");
	}
}

TEST(only_a_beginning_is_held_back)
{
	cleanup(buf_done) struct buf out = buf_make(4096);
	struct redact r;

	redact_init(&r);
	redact_add(&r, "secret");
	redact_feed(&r, "hello sec", 9, false, &out);
	CHECK_STR(buf_str(&out), "hello ");
	redact_feed(&r, "ond", 3, false, &out);
	CHECK_STR(buf_str(&out), "hello second");
	redact_done(&r);
}

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

static void feed_one(const char *secret, const char *text, const char *want)
{
	cleanup(buf_done) struct buf out = buf_make(64 * 1024);
	struct redact r;

	redact_init(&r);
	redact_add(&r, secret);
	redact_feed(&r, text, strlen(text), true, &out);
	CHECK_STR(buf_str(&out), want);
	redact_done(&r);
}

TEST(without_secrets_all_passes_at_once)
{
	cleanup(buf_done) struct buf out = buf_make(100);
	struct redact r;

	redact_init(&r);
	redact_feed(&r, "hello", 5, false, &out);
	CHECK_STR(buf_str(&out), "hello");
	redact_done(&r);
}

TEST(a_secret_has_a_shortest_and_a_longest)
{
	static char longest[REDACT_HELD_MAX + 2], stars[REDACT_HELD_MAX + 1];

	CHECK_INT(REDACT_LEN_MIN, 4);
	feed_one("abcd", "abcd", "****");
	feed_one("abc", "abc", "abc");
	memset(longest, 's', REDACT_HELD_MAX);
	memset(stars, '*', REDACT_HELD_MAX);
	feed_one(longest, longest, stars);
	longest[REDACT_HELD_MAX] = 's';
	feed_one(longest, longest, longest);
}

TEST(there_is_a_most_of_secrets)
{
	static char names[REDACT_MAX + 1][16];
	cleanup(buf_done) struct buf out = buf_make(100);
	struct redact r;

	redact_init(&r);
	for (int i = 0; i <= REDACT_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "secret-%04d", i);
		redact_add(&r, names[i]);
	}
	CHECK_INT(r.count, REDACT_MAX);
	redact_feed(&r, names[REDACT_MAX - 1], 11, true, &out);
	redact_feed(&r, names[REDACT_MAX], 11, true, &out);
	CHECK_INT(strncmp(buf_str(&out), "***********secret-", 18), 0);
	redact_done(&r);
}

/* As much is held back as may still become one, and not a byte more. */
TEST(what_is_held_back_is_the_longest_beginning)
{
	static const struct {
		const char *text;
		size_t held;
	} rows[] = {
		{ "abab", 4 },
		{ "xabab", 4 },
		{ "aba", 3 },
		{ "ab", 2 },
		{ "b", 0 },
		{ "ababx", 0 },
		{ "abb", 0 },
		{ "aaa", 1 },
		{ "abab0abq", 0 },
		{ "q12", 3 },
		{ "xq1", 2 },
		{ "abq", 1 },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		cleanup(buf_done) struct buf out = buf_make(100);
		struct redact r;

		redact_init(&r);
		redact_add(&r, "ababc");
		redact_add(&r, "q123456");
		redact_feed(&r, rows[i].text, strlen(rows[i].text), false, &out);
		if (strcmp(rows[i].text, "abab0abq") == 0)
			CHECK_INT(r.held.len, 1);
		else
			CHECK_INT(r.held.len, rows[i].held);
		redact_feed(&r, NULL, 0, true, &out);
		CHECK_STR(buf_str(&out), rows[i].text);
		redact_done(&r);
	}
}

#include "egress/redact.h"

#include "lib/str.h"

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
		feed("secret-two-longersecret-onesecret-", step,
		     "***************************secret-");
		feed("nothing here, secret-", step, "nothing here, secret-");
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
	static char longest[REDACT_LEN_MAX + 2], stars[REDACT_LEN_MAX + 1];

	CHECK_INT(REDACT_LEN_MIN, 4);
	feed_one("abcd", "abcd", "****");
	feed_one("abc", "abc", "abc");
	memset(longest, 's', REDACT_LEN_MAX);
	memset(stars, '*', REDACT_LEN_MAX);
	feed_one(longest, longest, stars);
	longest[REDACT_LEN_MAX] = 's';
	feed_one(longest, longest, longest);
}

TEST(there_is_a_most_of_secrets)
{
	static char names[REDACT_MAX + 1][16];
	cleanup(buf_done) struct buf out = buf_make(100);
	struct redact r;

	redact_init(&r);
	for (int i = 0; i <= REDACT_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "%04d-secret", i);
		redact_add(&r, names[i]);
	}
	CHECK_INT(r.count, REDACT_MAX);
	redact_feed(&r, names[REDACT_MAX - 1], 11, true, &out);
	redact_feed(&r, names[REDACT_MAX], 11, true, &out);
	CHECK_INT(strncmp(buf_str(&out), "***********0064-secret", 22), 0);
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

/* A server that cuts what it echoes: the guest chose where. */
TEST(a_beginning_is_no_less_secret)
{
	for (size_t step = 1; step < 40; step++) {
		feed("nothing here, secret-tw", step, "nothing here, *********");
		feed("secret-o.", step, "********.");
		feed("secret-t.", step, "********.");
		feed("secret-x.", step, "secret-x.");
	}
	feed_one("0123456789abcdefghij", "0123456789. 012345678.", "**********. 012345678.");
	feed_one("0123456789abcdefghij", "01234567", "********");
	feed_one("0123456789abcdefghij", "0123456", "0123456");
}

/* As servers write a text into JSON, HTML, a URL or a form: each with its length. */
TEST(a_secret_is_found_as_others_write_it)
{
	static const char secret[] = "Key a/b+c\"<d>&'%e==";
	static const char *const rows[] = {
		"Key a/b+c\"<d>&'%e==",
		"Key a\\/b+c\\\"<d>&'%e==",
		"Key a\\\\\\/b+c\\\\\\\"<d>&'%e==",
		"Key a\\u002Fb\\u002bc\\u0022\\u003cd\\u003E\\u0026\\u0027%e\\u003d\\u003d",
		"\\x4bey\\x20a\\x2fb+c\\x22<d>&\\x27%e==",
		"Key%20a%2Fb%2bc%22%3Cd%3e%26%27%25e%3D%3D",
		"Key+a%2Fb%2Bc%22%3Cd%3E%26%27%25e%3D%3D",
		"Key%2520a%252Fb%252Bc%2522%253Cd%253E%2526%2527%2525e%253D%253D",
		"Key a/b+c&quot;&lt;d&gt;&amp;&#039;%e==",
		"Key a&#x2F;b&#x2B;c&#34;&#60;d&#62;&#38;&apos;&#37;e&#x3d;&#x0003D;",
		"Key a/b+c&amp;quot;&amp;lt;d&amp;gt;&amp;amp;&amp;#39;%e==",
		"&#75;&#101;&#121; a/b+c\"<d>&'%e==",
	};

	for (size_t i = 0; i < array_len(rows); i++)
		for (size_t step = 1; step <= strlen(rows[i]); step += 1 + step / 8) {
			cleanup(buf_done) struct buf out = buf_make(4096), text = buf_make(4096);
			struct redact r;

			buf_addf(&text, "\\%%4&%s%%4", rows[i]);
			redact_init(&r);
			redact_add(&r, secret);
			for (size_t at = 0; at < text.len; at += step)
				redact_feed(&r, text.data + at,
					    text.len - at < step ? text.len - at : step, false,
					    &out);
			redact_feed(&r, NULL, 0, true, &out);
			CHECK_INT(out.len, text.len);
			if (strspn(buf_str(&out) + 4, "*") < strlen(rows[i]))
				CHECK_STR(buf_str(&out), rows[i]);
			CHECK(str_starts(buf_str(&out), "\\%4&*"));
			CHECK_STR(buf_str(&out) + out.len - 2, "%4");
			redact_done(&r);
		}
}

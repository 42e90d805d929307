#include "lib/str.h"

#include <inttypes.h>

#include "test.h"

TEST(sizes_and_durations_have_units)
{
	static const struct {
		int (*read)(const char *s, uint64_t *ret, struct err *e);
		const char *text;
		uint64_t value;
	} rows[] = {
		{ str_size, "512", 512 },
		{ str_size, "3k", 3072 },
		{ str_size, "3m", 3145728 },
		{ str_size, "2g", 2147483648 },
		{ str_size, "1t", 1099511627776 },
		{ str_duration_ms, "250ms", 250 },
		{ str_duration_ms, "7", 7000 },
		{ str_duration_ms, "7s", 7000 },
		{ str_duration_ms, "3m", 180000 },
		{ str_duration_ms, "2h", 7200000 },
		{ str_duration_ms, "2d", 172800000 },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		uint64_t n = 0;
		struct err e;

		CHECK_OK(rows[i].read(rows[i].text, &n, &e), &e);
		if (n != rows[i].value)
			test_fail(__FILE__, __LINE__, "%s is %" PRIu64, rows[i].text, n);
	}
}

TEST(odd_numbers_are_refused)
{
	static const char *const bad[] = { "", "x", "-1", "1x", " 1", "1 ", "18446744073709551616",
					   "99999999999999t", "0x10", "1.5g" };
	uint64_t n = 7;
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++) {
		CHECK_ERR(str_u64(bad[i], &n, &e), &e, ERR_INVALID);
		CHECK_ERR(str_size(bad[i], &n, &e), &e, ERR_INVALID);
	}
	CHECK_INT(n, 7);
}

TEST(utf8_is_checked_as_the_standard_says)
{
	static const struct {
		const char *text;
		size_t valid;
		bool cut;
	} cases[] = {
		{ "plain", 5, false },
		{ "\xc3\xa9", 2, false },
		{ "a\xc3", 1, true },
		{ "\xe2\x82", 0, true },
		{ "\xe2\x82\xac", 3, false },
		{ "\xf0\x9f\x98\x80", 4, false },
		{ "\xf0\x9f\x98", 0, true },
		{ "\xc0\x80", 0, false },         /* overlong */
		{ "\xed\xa0\x80", 0, false },     /* surrogate */
		{ "\xf4\x90\x80\x80", 0, false }, /* past the end */
		{ "\xff", 0, false },
		{ "ok\x80", 2, false },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		size_t len = strlen(cases[i].text);
		size_t valid = utf8_valid_prefix(cases[i].text, len);

		CHECK_INT(valid, cases[i].valid);
		CHECK_INT(utf8_is_cut(cases[i].text + valid, len - valid), cases[i].cut);
	}
}

TEST(base64_goes_there_and_back)
{
	char data[64];
	struct err e;

	for (size_t len = 0; len < sizeof(data); len++) {
		cleanup(buf_done) struct buf text = buf_make(256), back = buf_make(256);

		data[len] = (char)(len * 37);
		base64_add(&text, data, len);
		CHECK_OK(base64_decode(buf_str(&text), &back, &e), &e);
		CHECK_INT(back.len, len);
		CHECK(len == 0 || memcmp(back.data, data, len) == 0);
	}
}

/* The test vectors of RFC 4648: of the bytes behind the end nothing is to be seen. */
TEST(base64_is_as_the_rfc_says)
{
	static const char *const want[] = { "", "Zg==", "Zm8=", "Zm9v",
					    "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };

	for (size_t len = 0; len < array_len(want); len++) {
		cleanup(buf_done) struct buf text = buf_make(64);

		base64_add(&text, "foobar", len);
		CHECK_STR(buf_str(&text), want[len]);
	}
}

TEST(broken_base64_is_refused)
{
	static const char *const bad[] = { "a", "ab=c", "a===", "ab\ncd==", "****", "abc" };
	cleanup(buf_done) struct buf out = buf_make(256);
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(base64_decode(bad[i], &out, &e), &e, ERR_INVALID);
}

TEST(a_copy_fits_or_does_not_happen)
{
	char to[4] = "old";

	CHECK(!str_copy(to, sizeof(to), "four"));
	CHECK_STR(to, "old");
	CHECK(str_copy(to, sizeof(to), "new"));
	CHECK_STR(to, "new");
}

/* The first and the last of each length, and those beside them that are none. */
TEST(utf8_at_its_edges)
{
	static const struct {
		const char *text;
		size_t len, valid;
	} rows[] = {
		{ "\x7f", 1, 1 },
		{ "\x80", 1, 0 },
		{ "\xc1\xbf", 2, 0 },
		{ "\xc2\x80", 2, 2 },
		{ "\xdf\xbf", 2, 2 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xe0\xa0\x80", 3, 3 },
		{ "\xe1\x80\x80", 3, 3 },
		{ "\xed\x9f\xbf", 3, 3 },
		{ "\xed\xa0\x80", 3, 0 },
		{ "\xee\x80\x80", 3, 3 },
		{ "\xef\xbf\xbf", 3, 3 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xf0\x90\x80\x80", 4, 4 },
		{ "\xf1\x80\x80\x80", 4, 4 },
		{ "\xf3\xbf\xbf\xbf", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xf4\x90\x80\x80", 4, 0 },
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xc2\xc0", 2, 0 },
		{ "\xe1\x80\xc0", 3, 0 },
		{ "\xf1\x80\x80\x7f", 4, 0 },
	};

	for (size_t i = 0; i < array_len(rows); i++)
		if (utf8_valid_prefix(rows[i].text, rows[i].len) != rows[i].valid)
			test_fail(__FILE__, __LINE__, "row %zu", i);
}

TEST(what_is_no_number_size_or_time_is_invalid)
{
	uint64_t n;
	struct err e;

	CHECK_ERR(str_u64("1x", &n, &e), &e, ERR_INVALID);
	CHECK_ERR(str_size("1x", &n, &e), &e, ERR_INVALID);
	CHECK_ERR(str_duration_ms("1x", &n, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "not a duration like 30s or 5m: \"1x\"");
}

TEST(ends_and_hex)
{
	char hex[7];

	CHECK(str_ends("a.git", ".git") && str_ends(".git", ".git") && str_ends("x", ""));
	CHECK(!str_ends("git", ".git") && !str_ends("a.gi", ".git") && !str_ends("", "x"));
	str_hex(hex, "\x01\xaf\xf0", 3);
	CHECK_STR(hex, "01aff0");
	str_hex(hex, "", 0);
	CHECK_STR(hex, "");
}

TEST(a_character_has_a_length_and_a_number)
{
	static const struct {
		const char *text;
		size_t len;
		uint32_t number;
		bool control;
	} rows[] = {
		{ "a\xc3", 1, 'a', false },
		{ "\xc3\xa9", 2, 0xe9, false },
		{ "\xe2\x82\xac.", 3, 0x20ac, false },
		{ "\xf0\x9f\x98\x80\x80", 4, 0x1f600, false },
		{ "\xe2\x82", 1, 0xe2, true }, /* cut off */
		{ "\xff", 1, 0xff, true },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		struct str_char c = str_char_at(rows[i].text);

		CHECK_INT(c.len, rows[i].len);
		CHECK_INT(c.number, rows[i].number);
		CHECK_INT(c.control, rows[i].control);
	}
}

/* The first and the last of each range, and those beside them that may be shown. */
TEST(what_drives_a_terminal_or_turns_the_text_is_a_control)
{
	static const struct {
		const char *text;
		bool control;
	} rows[] = {
		{ "\0", true },
		{ "\x1f", true },
		{ " ", false },
		{ "~", false },
		{ "\x7f", true },
		{ "\xc2\x80", true },
		{ "\xc2\x9f", true },
		{ "\xc2\xa0", false },
		{ "\xe2\x80\xa7", false }, /* U+2027 */
		{ "\xe2\x80\xa8", true },
		{ "\xe2\x80\xae", true },
		{ "\xe2\x80\xaf", false }, /* U+202F */
		{ "\xe2\x81\xa5", false }, /* U+2065 */
		{ "\xe2\x81\xa6", true },
		{ "\xe2\x81\xa9", true },
		{ "\xe2\x81\xaa", false }, /* U+206A */
	};

	for (size_t i = 0; i < array_len(rows); i++)
		if (str_char_at(rows[i].text).control != rows[i].control)
			test_fail(__FILE__, __LINE__, "row %zu", i);
}

TEST(a_control_is_found_wherever_it_is)
{
	CHECK(!str_has_control("") && !str_has_control("plain, gr\xc3\xbcn, \xe2\x82\xac"));
	CHECK(str_has_control("\x1b[2J") && str_has_control("a line\n"));
	CHECK(str_has_control("\xe2\x82\xac\xe2\x80\xae"
			      "txt.exe"));
	CHECK(str_has_control("no utf8 \xff"));
}

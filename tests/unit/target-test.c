#include "http/target.h"

#include "test.h"

/* One segment; what is left of the path is given back. */
static int segment(const char *path, size_t size, char *to, const char **rest, struct err *e)
{
	*rest = path;
	*e = (struct err){ 0 };
	return http_segment(rest, to, size, e);
}

TEST(a_segment_is_decoded_and_the_path_moves_on)
{
	static const struct {
		const char *path, *want, *rest;
	} rows[] = {
		{ "a/b", "a", "b" },
		{ "a", "a", "" },
		{ "", "", "" },
		{ "/x", "", "x" },
		{ "a%2Fb/c", "a/b", "c" },
		{ "a+b", "a+b", "" },
		{ "%4a%4A%6f", "JJo", "" },
		{ "%0A%f0%A9", "\n\xf0\xa9", "" },
		{ "%01%10", "\x01\x10", "" },
		{ "...", "...", "" },
		{ ".a", ".a", "" },
		{ "%20%09", " \t", "" },
	};
	char to[16];
	const char *rest;
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		CHECK_OK(segment(rows[i].path, sizeof(to), to, &rest, &e), &e);
		CHECK_STR(to, rows[i].want);
		CHECK_STR(rest, rows[i].rest);
	}
}

TEST(every_byte_but_nul_can_be_encoded)
{
	for (unsigned c = 1; c < 256; c++) {
		char path[8], to[4];
		const char *rest;
		struct err e;

		snprintf(path, sizeof(path), "%%%02Xx", c);
		CHECK_OK(segment(path, sizeof(to), to, &rest, &e), &e);
		CHECK_INT((unsigned char)to[0], c);
		CHECK_STR(to + 1, "x");
	}
}

TEST(what_is_no_encoding_is_refused)
{
	static const char *const bad[] = { "%", "%4", "a%4", "%4g", "%g4", "%4/4",
					   "%00", "%/0", "%:0", "%4%34a", "%4`", "%@1",
					   "%G1", "%1G", "% 1", "a%zz" };
	char to[16];
	const char *rest;
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++) {
		CHECK_ERR(segment(bad[i], sizeof(to), to, &rest, &e), &e, ERR_INVALID);
		CHECK_STR(e.msg, "bad percent-encoding in the path or query");
		CHECK(rest == bad[i]);
	}
}

TEST(no_segment_leads_up)
{
	static const char *const bad[] = { ".", "..", "./a", "../a", "%2e", "%2E.", ".%2e/x" };
	char to[16];
	const char *rest;
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++) {
		CHECK_ERR(segment(bad[i], sizeof(to), to, &rest, &e), &e, ERR_INVALID);
		CHECK_STR(e.msg, "the path must not have . or .. as a part");
	}
}

TEST(a_segment_fits_or_is_refused)
{
	char to[4];
	const char *rest;
	struct err e;

	CHECK_OK(segment("abc/d", sizeof(to), to, &rest, &e), &e);
	CHECK_STR(to, "abc");
	CHECK_OK(segment("a%62c", sizeof(to), to, &rest, &e), &e);
	CHECK_ERR(segment("abcd", sizeof(to), to, &rest, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "a part of the path or query is too long");
	CHECK_ERR(segment("", 0, to, &rest, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "a part of the path or query is too long");
	CHECK_OK(segment("", 1, to, &rest, &e), &e);
	CHECK_STR(to, "");
}

TEST(a_parameter_is_found_by_its_whole_name)
{
	static const struct {
		const char *query, *want; /* NULL: it is not there */
	} rows[] = {
		{ "a=1", "1" },
		{ "b=2&a=1", "1" },
		{ "a=1&a=2", "1" },
		{ "a", "" },
		{ "a=", "" },
		{ "a&b", "" },
		{ "ab=1", NULL },
		{ "b=a", NULL },
		{ "", NULL },
		{ "ba=1", NULL },
		{ "b&a=x+y", "x y" },
		{ "a=%2B%20", "+ " },
		{ "&&a=1", "1" },
		{ "ab=1&a=3", "3" },
		{ "a=b=c", "b=c" },
		{ "b", NULL },
	};
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		char to[8] = "?";
		bool found = !rows[i].want;

		CHECK_OK(http_query(rows[i].query, "a", to, sizeof(to), &found, &e), &e);
		CHECK_INT(found, rows[i].want != NULL);
		CHECK_STR(to, rows[i].want ? rows[i].want : ""); /* nothing of before is left */
	}
}

TEST(a_parameter_that_cannot_be_read_is_refused)
{
	char to[4];
	bool found;
	struct err e;

	CHECK_ERR(http_query("a=%zz", "a", to, sizeof(to), &found, &e), &e, ERR_INVALID);
	CHECK_ERR(http_query("a=1234", "a", to, sizeof(to), &found, &e), &e, ERR_INVALID);
	CHECK_OK(http_query("b=%zz&a=1", "a", to, sizeof(to), &found, &e), &e);
	CHECK_STR(to, "1");
}

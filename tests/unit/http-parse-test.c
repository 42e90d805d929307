#include "http/parse.h"

#include <stdlib.h>

#include "test.h"

#define HOST "Host: a\r\n"

/* Body bytes of the message under way. */
static struct buf heard;

static void keep_body(struct http_parser *p, const char *data, size_t len)
{
	(void)p;
	buf_add(&heard, data, len);
}

static void begin(struct http_parser *p)
{
	http_parser_init(p, 0);
	p->on_body = keep_body;
	heard = buf_make(65536);
}

static void begin_reply(struct http_parser *p, bool head_only)
{
	http_parser_init_reply(p, head_only);
	p->on_body = keep_body;
	heard = buf_make(65536);
}

static void end(struct http_parser *p)
{
	buf_done(&heard);
	http_parser_done(p);
}

/* A head in one piece; all of it must have been taken. */
static void take_head(struct http_parser *p, const char *text)
{
	size_t used;

	CHECK_INT(http_parser_head(p, text, strlen(text), &used), PARSE_DONE);
	CHECK_INT(used, strlen(text));
}

/* ---- requests ---- */

TEST(a_request_is_its_method_target_and_fields)
{
	struct http_parser p;
	const char *name, *value;

	begin(&p);
	take_head(&p, "PATCH /a?b=c HTTP/1.1\r\n" HOST
		      "X-One: 1 \t \r\nx-none:\r\nX-ONE: 2\r\n\r\n");
	CHECK_STR(http_parser_method(&p), "PATCH");
	CHECK_STR(http_parser_target(&p), "/a?b=c");
	CHECK(!http_parser_is_1_0(&p));
	CHECK(p.keep_alive && p.whole && !p.upgrade);
	CHECK_INT(http_parser_content_length(&p), 0);
	CHECK(http_parser_field(&p, 0, &name, &value));
	CHECK_STR(name, "Host");
	CHECK_STR(value, "a");
	CHECK(http_parser_field(&p, 1, &name, &value));
	CHECK_STR(name, "X-One");
	CHECK_STR(value, "1");
	CHECK(http_parser_field(&p, 2, &name, &value));
	CHECK_STR(value, "");
	CHECK(!http_parser_field(&p, 4, &name, &value));
	CHECK_STR(http_parser_find(&p, "x-ONE"), "1");
	CHECK(!http_parser_find(&p, "X-Two"));
	end(&p);
}

/* Every cut of a head means the same as the whole. */
TEST(a_head_in_two_pieces_is_the_same)
{
	static const char text[] = "GET /x HTTP/1.1\r\n" HOST "A: b c\r\n\r\n";
	struct http_parser p;
	size_t used;

	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		begin(&p);
		CHECK_INT(http_parser_head(&p, text, cut, &used), PARSE_MORE);
		CHECK_INT(used, cut);
		CHECK(!p.head_done);
		take_head(&p, text + cut);
		CHECK_STR(http_parser_target(&p), "/x");
		CHECK_STR(http_parser_find(&p, "A"), "b c");
		end(&p);
	}
}

static void check_bad(const char *text, int status, const char *reason)
{
	struct http_parser p;
	size_t used;

	begin(&p);
	if (http_parser_head(&p, text, strlen(text), &used) != PARSE_BAD)
		test_fail(__FILE__, __LINE__, "taken: %s", text);
	CHECK_INT(p.status, status);
	if (reason)
		CHECK_STR(p.reason, reason);
	end(&p);
}

TEST(a_refused_request_is_answered_with_its_status)
{
	static const char lines[] = "a head is lines of text that end in CR LF";
	static const struct {
		const char *text;
		int status;
		const char *reason;
	} rows[] = {
		{ "GET / HTTP/2.0\r\n" HOST "\r\n", 505,
		  "only HTTP/1.0 and HTTP/1.1 are spoken here" },
		{ "GET / HTTP/1.1\r\n\r\n", 400, "there must be exactly one Host header" },
		{ "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400,
		  "there must be exactly one Host header" },
		{ "GET / HTTP/1.0\r\n" HOST HOST "\r\n", 400,
		  "there must be exactly one Host header" },
		{ "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400,
		  "HTTP/1.0 has no Transfer-Encoding" },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 400,
		  "Transfer-Encoding can only be chunked" },
		{ "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", 400, "this is no proxy" },
		{ "GET http://b/ HTTP/1.1\r\n" HOST "\r\n", 400, "the target must begin with /" },
		{ "GET *a HTTP/1.1\r\n" HOST "\r\n", 400, NULL },
		{ "\r\n\r\n", 400, NULL },
		{ "GET / HTTP/1.1\n" HOST "\r\n", 400, lines },
		{ "GET / HTTP/1.1\r" HOST "\r\n", 400, lines },
		{ "GET / HTTP/1.1\r\n" HOST " folded: x\r\n\r\n", 400, lines },
		{ "GET / HTTP/1.1\r\n" HOST "\tfolded: x\r\n\r\n", 400, lines },
		{ "GET / HTTP/1.1\r\n" HOST ": x\r\n\r\n", 400, lines },
	};

	for (size_t i = 0; i < array_len(rows); i++)
		check_bad(rows[i].text, rows[i].status, rows[i].reason);
}

TEST(an_asterisk_is_a_target_and_http_1_0_needs_no_host)
{
	struct http_parser p;

	begin(&p);
	take_head(&p, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
	CHECK_STR(http_parser_target(&p), "*");
	http_parser_next(&p);
	take_head(&p, "GET / HTTP/1.0\r\n\r\n");
	CHECK(http_parser_is_1_0(&p));
	CHECK(!p.keep_alive);
	http_parser_next(&p);
	CHECK(!http_parser_find(&p, "Host"));
	end(&p);
}

static enum parse_result feed(struct http_parser *p, size_t fields)
{
	cleanup(buf_done) struct buf head = buf_make(65536);
	size_t used;

	buf_addf(&head, "GET / HTTP/1.1\r\n" HOST);
	for (size_t i = 1; i < fields; i++)
		buf_addf(&head, "A: b\r\n");
	buf_addf(&head, "\r\n");
	return http_parser_head(p, head.data, head.len, &used);
}

TEST(fields_have_a_limit)
{
	struct http_parser p;

	begin(&p);
	CHECK_INT(feed(&p, HTTP_FIELDS_MAX), PARSE_DONE);
	CHECK_INT(p.field_count, HTTP_FIELDS_MAX);
	http_parser_next(&p);
	CHECK_INT(feed(&p, HTTP_FIELDS_MAX + 1), PARSE_BAD);
	CHECK_INT(p.status, 431);
	end(&p);
}

/* A head of exactly that many bytes, in one piece. */
static enum parse_result feed_bytes(struct http_parser *p, size_t size)
{
	static const char first[] = "GET / HTTP/1.1\r\n" HOST "A: ";
	char *text = malloc(size + 1);
	enum parse_result got;
	size_t used;

	memset(text, 'x', size);
	memcpy(text, first, sizeof(first) - 1);
	memcpy(text + size - 4, "\r\n\r\n", 5);
	got = http_parser_head(p, text, size, &used);
	free(text);
	return got;
}

TEST(a_head_has_a_limit)
{
	static const struct {
		size_t asked, limit;
	} rows[] = {
		{ 0, HTTP_HEAD_MAX },
		{ 1, 1 },
		{ 200, 200 },
		{ HTTP_HEAD_MAX, HTTP_HEAD_MAX },
		{ HTTP_HEAD_MAX + 1, HTTP_HEAD_MAX },
	};
	struct http_parser p;

	for (size_t i = 0; i < array_len(rows); i++) {
		http_parser_init(&p, rows[i].asked);
		CHECK_INT(p.head_max, rows[i].limit);
		if (rows[i].limit > 100) {
			CHECK_INT(feed_bytes(&p, rows[i].limit), PARSE_DONE);
			http_parser_next(&p);
			CHECK_INT(feed_bytes(&p, rows[i].limit + 1), PARSE_BAD);
			CHECK_INT(p.status, 431);
		}
		http_parser_done(&p);
	}
}

/* ---- bodies ---- */

static void take_body(struct http_parser *p, const char *text, const char *want, size_t want_used)
{
	size_t used;

	buf_clear(&heard);
	CHECK_INT(http_parser_body(p, text, strlen(text), &used), PARSE_DONE);
	CHECK_INT(used, want_used);
	CHECK(p->whole);
	CHECK_STR(buf_str(&heard), want);
}

TEST(a_body_ends_where_it_says_and_the_next_request_is_not_looked_at)
{
	struct http_parser p;
	size_t used;

	begin(&p);
	take_head(&p, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n");
	CHECK(!p.whole);
	CHECK_INT(http_parser_content_length(&p), 5);
	CHECK_INT(http_parser_body(&p, "ab", 2, &used), PARSE_MORE);
	CHECK_INT(used, 2);
	take_body(&p, "cdeGET /", "cde", 3);
	CHECK_INT(http_parser_content_length(&p), 0);

	http_parser_next(&p);
	CHECK(!p.whole && !p.head_done && !p.keep_alive);
	take_head(&p, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n");
	CHECK_INT(http_parser_content_length(&p), -1);
	take_body(&p, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET", "abcde", 20);
	end(&p);
}

/* In pieces of `step` bytes. */
static void check_body_bad(const char *text, size_t step)
{
	enum parse_result result = PARSE_MORE;
	struct http_parser p;
	size_t used;

	begin(&p);
	take_head(&p, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	for (size_t at = 0; at < strlen(text) && result == PARSE_MORE; at += step) {
		size_t left = strlen(text) - at;

		result = http_parser_body(&p, text + at, left < step ? left : step, &used);
	}
	CHECK_INT(result, PARSE_BAD);
	CHECK_INT(p.status, 400);
	CHECK(p.reason && *p.reason);
	end(&p);
}

TEST(a_body_that_lies_is_refused)
{
	static const char *const rows[] = {
		"3\r\nabcd\r\n0\r\n\r\n",
		"x\r\n\r\n",
		"0\r\nTrailer: x\r\n\r\n",
		"0\r\n\n", /* whole for llhttp, and not for many servers */
		"3\r\nabc\r\n0\r\n\nGET",
		"0\n\r\n",
		"0\r\n\r\r\n",
		"3\nabc\r\n0\r\n\r\n",
		"3\r\nabc\n0\r\n\r\n",
		"3;x\ny\r\nabc\r\n0\r\n\r\n",
	};

	for (size_t i = 0; i < array_len(rows); i++)
		for (size_t step = 1; step <= strlen(rows[i]); step++)
			check_body_bad(rows[i], step);
}

/* The bytes of a chunk are no lines. */
TEST(the_data_of_a_chunk_is_whatever_it_is)
{
	struct http_parser p;

	begin(&p);
	take_head(&p, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	take_body(&p, "4\r\n\n\r\r\n\r\n1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", "\n\r\r\n\r\n", 26);
	end(&p);
}

TEST(a_length_past_what_a_signed_number_holds_is_the_largest)
{
	struct http_parser p;

	begin(&p);
	take_head(&p, "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n");
	CHECK(http_parser_content_length(&p) == INT64_MAX);
	end(&p);
}

TEST(an_upgrade_is_seen)
{
	struct http_parser p;

	begin(&p);
	take_head(&p, "GET / HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: x\r\n\r\n");
	CHECK(p.upgrade && p.whole);
	http_parser_next(&p);
	CHECK(!p.upgrade);
	end(&p);
}

/* ---- after a message ---- */

/* A head that was cut off leaves nothing for the next one to continue. */
TEST(the_next_message_begins_anew)
{
	struct http_parser p;
	size_t used;

	begin(&p);
	CHECK_INT(http_parser_head(&p, "GET /\r", 6, &used), PARSE_MORE);
	http_parser_next(&p);
	take_head(&p, "GET /b HTTP/1.1\r\n" HOST "\r\n");
	CHECK_STR(http_parser_target(&p), "/b");
	http_parser_forget(&p);
	CHECK(!p.fields);
	CHECK_INT(p.field_count, 0);
	CHECK_INT(p.field_size, 0);
	p.head = buf_make(HTTP_HEAD_MAX + 1);
	http_parser_next(&p);
	take_head(&p, "GET /c HTTP/1.1\r\n" HOST "\r\n");
	CHECK_STR(http_parser_target(&p), "/c");
	end(&p);
}

/* ---- replies ---- */

TEST(a_reply_is_its_status_and_fields)
{
	struct http_parser p;

	begin_reply(&p, false);
	CHECK(p.reply);
	take_head(&p, "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n");
	CHECK_INT(http_parser_status(&p), 204);
	CHECK_STR(http_parser_find(&p, "X"), "y");
	CHECK(p.whole);
	http_parser_next(&p);
	take_head(&p, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
	take_body(&p, "hi", "hi", 2);
	end(&p);
}

TEST(a_reply_to_head_has_no_body)
{
	struct http_parser p;

	begin_reply(&p, true);
	take_head(&p, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
	CHECK(p.whole);
	end(&p);
}

static enum parse_result reply(const char *text, bool any_end, int *status)
{
	struct http_parser p;
	enum parse_result got;
	size_t used;

	begin_reply(&p, false);
	p.any_end = any_end;
	got = http_parser_head(&p, text, strlen(text), &used);
	*status = p.status;
	end(&p);
	return got;
}

TEST(a_reply_that_could_be_misread_is_refused)
{
	static const struct {
		const char *text;
		bool any_end;
		enum parse_result want;
		int status;
	} rows[] = {
		{ "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", false, PARSE_BAD, 502 },
		{ "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n", false, PARSE_BAD, 502 },
		{ "HTTP/1.1 599 X\r\nContent-Length: 0\r\n\r\n", false, PARSE_DONE, 0 },
		{ "HTTP/1.1 100 X\r\n\r\n", false, PARSE_DONE, 0 },
		{ "HTTP/2.0 200 X\r\nContent-Length: 0\r\n\r\n", false, PARSE_BAD, 502 },
		{ "HTTP/1.0 200 X\r\nContent-Length: 0\r\n\r\n", false, PARSE_BAD, 502 },
		{ "HTTP/1.0 200 X\r\nContent-Length: 0\r\n\r\n", true, PARSE_DONE, 0 },
		{ "HTTP/1.1 200 X\r\n\r\n", false, PARSE_BAD, 400 },
		{ "HTTP/1.1 200 X\r\n\r\n", true, PARSE_DONE, 0 },
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", false, PARSE_BAD, 400 },
	};
	int status;

	for (size_t i = 0; i < array_len(rows); i++) {
		enum parse_result got = reply(rows[i].text, rows[i].any_end, &status);

		if (got != rows[i].want)
			test_fail(__FILE__, __LINE__, "%d for %s", (int)got, rows[i].text);
		CHECK_INT(status, rows[i].status);
	}
}

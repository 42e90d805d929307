#include "egress/answer-watch.h"

#include <string.h>

#include "test.h"

#define HEAD "HTTP/1.1 200 OK\r\n"

/* After these bytes, whatever their pieces: would ours land inside an answer? */
static bool is_inside(const char *text, bool head_only)
{
	bool first = false;

	for (size_t step = 1; step <= strlen(text); step++) {
		struct answer_watch a;

		answer_watch_init(&a);
		answer_watch_asked(&a, head_only);
		for (size_t at = 0; at < strlen(text); at += step) {
			size_t left = strlen(text) - at;

			answer_watch_sent(&a, text + at, left < step ? left : step);
		}
		if (step == 1)
			first = answer_watch_is_inside(&a);
		CHECK_INT(answer_watch_is_inside(&a), first);
		answer_watch_done(&a);
	}
	return first;
}

TEST(an_answer_is_over_with_its_last_byte)
{
	CHECK(is_inside("H", false));
	CHECK(is_inside(HEAD "Content-Length: 2\r\n\r\n", false));
	CHECK(is_inside(HEAD "Content-Length: 2\r\n\r\no", false));
	CHECK(!is_inside(HEAD "Content-Length: 2\r\n\r\nok", false));
	CHECK(!is_inside(HEAD "Content-Length: 0\r\n\r\n", false));
	CHECK(!is_inside(HEAD "Content-Length: 2\r\n\r\n", true));
	CHECK(is_inside(HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", false));
	CHECK(!is_inside(HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false));
	CHECK(!is_inside("HTTP/1.1 204 No\r\n\r\n", false));
	CHECK(!is_inside("HTTP/1.1 100 Go\r\n\r\n", false));
	CHECK(is_inside("HTTP/1.1 100 Go\r\n\r\n" HEAD "Content-Length: 2\r\n\r\no", false));
}

TEST(what_has_no_end_that_is_known_is_never_over)
{
	CHECK(is_inside(HEAD "\r\nok", false));
	CHECK(is_inside("HTTP/1.1 101 Yes\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", false));
	CHECK(is_inside("what\r\n\r\n", false));
	CHECK(is_inside(HEAD "Content-Length: 2\r\n\r\nokH", false));
}

TEST(of_two_requests_at_once_no_end_is_known)
{
	static const char whole[] = HEAD "Content-Length: 2\r\n\r\nok";
	struct answer_watch a;

	answer_watch_init(&a);
	CHECK(!answer_watch_is_inside(&a));
	for (int i = 0; i < 3; i++) {
		answer_watch_asked(&a, false);
		CHECK(!answer_watch_is_inside(&a));
		answer_watch_sent(&a, whole, sizeof(whole) - 1);
		CHECK(!answer_watch_is_inside(&a));
	}
	answer_watch_asked(&a, false);
	answer_watch_asked(&a, true);
	CHECK(answer_watch_is_inside(&a));
	answer_watch_done(&a);
}

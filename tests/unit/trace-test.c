#include "core/trace.h"

#include <string.h>

#include "test.h"

TEST(a_trace_id_is_taken_or_refused_as_a_whole)
{
	static const char *const good[] = {
		"a",
		"tr_0123456789abcdef",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"0d9c5b5e-7e2c-4e9b-8f3e-1c2d3e4f5a6b",
	};
	static const char *const bad[] = { "", "a b", "a.b", "a\"b", "a\nb", "a;b", "\xc3\xa4" };
	char longest[TRACE_MAX + 2];
	struct err e;

	for (size_t i = 0; i < array_len(good); i++)
		CHECK_INT(trace_check(good[i], &e), 0);
	for (size_t i = 0; i < array_len(bad); i++) {
		CHECK_INT(trace_check(bad[i], &e), -1);
		CHECK_INT(e.code, ERR_INVALID);
	}
	memset(longest, 'x', sizeof(longest));
	longest[TRACE_MAX + 1] = '\0';
	CHECK_INT(trace_check(longest, &e), -1);
	longest[TRACE_MAX] = '\0';
	CHECK_INT(trace_check(longest, &e), 0);
}

TEST(a_request_id_begins_with_it_and_stays_its_own)
{
	char id[16];

	CHECK(trace_request_id("tr_1", "rq_2", id, sizeof(id)));
	CHECK_STR(id, "tr_1.rq_2");
	CHECK(trace_request_id(NULL, "rq_2", id, sizeof(id)));
	CHECK_STR(id, "rq_2");
	CHECK(!trace_request_id("tr_45678901", "rq_5", id, sizeof(id)));
}

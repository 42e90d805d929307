#include "egress/first-line.h"

#include "test.h"

TEST(a_first_line_is_a_request_or_not)
{
	static const struct {
		const char *text;
		enum look look;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n", LOOK_HTTP },
		{ "GET /", LOOK_HTTP },
		{ "GE", LOOK_METHOD },
		{ "M-SEARCH / HTTP/1.1\r\n", LOOK_HTTP },
		{ "get / http/1.0\n", LOOK_HTTP },
		{ "  GET\t/ HTTP/1.1\r\n", LOOK_HTTP },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP/1.1\r\n", LOOK_HTTP },
		{ "M-SEARCH /", LOOK_LINE },
		{ "M-SEAR", LOOK_LINE },
		{ " ", LOOK_LINE },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZ", LOOK_LINE },
		{ "ruok", LOOK_LINE },
		{ "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", LOOK_OTHER },
		{ "*1\r\n$4\r\nPING\r\n", LOOK_OTHER },
		{ "{\"id\": 1, ", LOOK_OTHER },
		{ "PING\r\nGET / HTTP/1.1\r\n", LOOK_OTHER },
		{ "\001\002", LOOK_OTHER },
	};

	for (size_t i = 0; i < array_len(rows); i++)
		if (first_line_look(rows[i].text, strlen(rows[i].text), false) != rows[i].look)
			CHECK_STR(rows[i].text, "");
}

/* However it is cut, all but the last piece without the version goes on. */
TEST(a_line_in_pieces_is_looked_at_to_its_end)
{
	static const char line[] = "M-SEARCH / HTTP/1.1\r\n";

	for (size_t cut = 1; cut < strlen("M-SEARCH / HTTP/"); cut++) {
		size_t kept = cut < FIRST_LINE_PART ? cut : FIRST_LINE_PART;

		CHECK_INT(first_line_look(line, cut, false), cut == 1 ? LOOK_METHOD : LOOK_LINE);
		CHECK_INT(first_line_look(line + cut - kept, strlen(line) - cut + kept, true),
			  LOOK_HTTP);
	}
	CHECK_INT(first_line_look("GET ", 4, true), LOOK_LINE);
	CHECK_INT(first_line_look("{}\001", 3, true), LOOK_LINE);
	CHECK_INT(first_line_look("k\r\n", 3, true), LOOK_OTHER);
}

#include "http-site.h"

#define GET(p) "GET " p " HTTP/1.1\r\nHost: a\r\n\r\n"

TEST(who_sends_ahead_waits_for_its_turn)
{
	cleanup(buf_done) struct buf many = buf_make(1 << 20), in = buf_make(1 << 20);
	int first, greedy, other;
	struct site s;

	site_open(&s, NULL);
	first = dial(&s);
	greedy = dial(&s);
	other = dial(&s);
	SAY(greedy, GET("/none"));
	CHECK(wait_for(&s.requests, 1)); /* it is known to the loop, and the others after it */
	SAY(other, GET("/none"));
	CHECK(wait_for(&s.requests, 2));
	SAY(first, GET("/hold"));
	CHECK(wait_for(&s.held, 1));
	for (int i = 0; i < 1000; i++)
		buf_adds(&many, GET("/none"));
	say(greedy, many.data, many.len);
	SAY(other, GET("/mark"));
	s.go_on = 1;
	CHECK(hear(other, &in, "HTTP/1.1 200"));
	CHECK(s.marked > 0 && s.marked < 500);
	CHECK(wait_for(&s.requests, 1004)); /* and all of its own are answered in the end */
	close(first);
	close(greedy);
	close(other);
	site_close(&s);
}

TEST(what_was_sent_before_the_end_is_answered)
{
	cleanup(buf_done) struct buf many = buf_make(1 << 20), in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	for (int i = 0; i < 100; i++)
		buf_adds(&many, GET("/none"));
	say(fd, many.data, many.len);
	CHECK(shutdown(fd, SHUT_WR) == 0);
	CHECK(hear(fd, &in, NULL));
	CHECK_INT(s.requests, 100);
	close(fd);
	site_close(&s);
}

#define STREAM(share) GET("/stream?n=30000000&share=" share)

/* The site has done all that was asked of it until now. */
static void settle(struct site *s, int requests)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	int fd;

	CHECK(wait_for(&s->requests, requests));
	fd = dial(s);
	SAY(fd, GET("/json"));
	CHECK(hear(fd, &in, "HTTP/1.1 200"));
	close(fd);
}

TEST(who_does_not_read_costs_only_the_clients_of_its_owner)
{
	const struct http_limits limits = { .output_mark = 1 << 20,
					    .output_share = 4 << 20,
					    .output_total = 8 << 20 };
	int greedy[8], other, whole = 0;
	struct site s;

	site_open(&s, &limits);
	for (size_t i = 0; i < array_len(greedy); i++) {
		greedy[i] = dial(&s);
		SAY(greedy[i], STREAM("7"));
	}
	settle(&s, array_len(greedy));
	other = dial(&s);
	SAY(other, STREAM("8"));
	settle(&s, array_len(greedy) + 2);
	CHECK(hear_all(other, 30000000) >= 30000000);
	for (size_t i = 0; i < array_len(greedy); i++) {
		whole += hear_all(greedy[i], 30000000) >= 30000000;
		close(greedy[i]);
	}
	CHECK(whole > 0 && whole < 5); /* each has 1 MiB */
	close(other);
	site_close(&s);
	for (size_t i = 0; i < HTTP_SHARES; i++)
		CHECK_INT(s.server.held_shares[i], 0);
	CHECK_INT(s.server.held, 0);
}

#define SMALL(share) GET("/stream?n=5&share=" share)

/* On a connection that stays. */
static void ask(int fd, const char *request)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);

	say(fd, request, strlen(request));
	CHECK(hear(fd, &in, "HTTP/1.1 200"));
}

TEST(one_owners_connections_leave_others_theirs)
{
	const struct http_limits limits = { .connections = 8 };
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	int greedy[6], other, more;
	struct site s;

	site_open(&s, &limits);
	for (size_t i = 0; i < array_len(greedy); i++) {
		greedy[i] = dial(&s);
		ask(greedy[i], SMALL("7")); /* then it is idle */
	}
	more = dial(&s);
	SAY(more, SMALL("7"));
	CHECK(hear(more, &in, NULL)); /* told so, and closed */
	CHECK(strstr(buf_str(&in), "HTTP/1.1 503"));
	close(more);
	other = dial(&s);
	ask(other, SMALL("8"));
	ask(greedy[0], SMALL("7")); /* one that is counted is no new one */
	ask(greedy[0], SMALL("8")); /* it is another's now */
	more = dial(&s);
	ask(more, SMALL("7"));
	close(more);
	close(other);
	for (size_t i = 0; i < array_len(greedy); i++)
		close(greedy[i]);
	site_close(&s);
	for (size_t i = 0; i < HTTP_SHARES; i++)
		CHECK_INT(s.server.conn_shares[i], 0);
}

TEST(connections_without_an_owner_leave_owners_theirs)
{
	static const char small[] = GET("/json");
	const struct http_limits limits = { .connections = 8, .head_ms = 120000 };
	int unowned[8], owner = -1;
	struct site s;

	site_open(&s, &limits);
	for (size_t i = 0; i < array_len(unowned); i++) {
		unowned[i] = dial(&s);
		if (i % 2) /* half of them say nothing at all */
			ask(unowned[i], small);
	}
	for (int i = 0; i < 300 && owner < 0; i++) { /* as a client that tries again */
		cleanup(buf_done) struct buf in = buf_make(1 << 20);
		int fd = dial(&s);

		SAY(fd, SMALL("7"));
		if (hear(fd, &in, "\r\n") && strstr(buf_str(&in), "HTTP/1.1 200"))
			owner = fd;
		else
			close(fd);
		usleep(100000);
	}
	CHECK(owner >= 0);
	usleep(1500000);
	ask(owner, SMALL("7")); /* an owner's stays */
	close(owner);
	for (size_t i = 0; i < array_len(unowned); i++)
		close(unowned[i]);
	site_close(&s);
}

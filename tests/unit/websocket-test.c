/* The engine's WebSocket, over a real connection. */
#include "http/websocket.h"

#include "http-site.h"

#define ASK \
	"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define MASK "\0\0\0\0" /* allowed, and leaves the bytes readable */

TEST(a_handshake_is_answered_as_the_standard_says)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, ASK "\x81\x85" MASK "hello"); /* right behind the head */
	CHECK(hear(fd, &in, "\x81\x05hello"));
	CHECK(str_starts(in.data, "HTTP/1.1 101 "));
	CHECK(strstr(in.data, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	SAY(fd, "\x89\x82" MASK "hm");
	CHECK(hear(fd, &in, "\x8a\x02hm"));
	SAY(fd, "\x88\x82" MASK "\x03\xe8");
	CHECK(hear(fd, &in, "\x88\x02\x03\xe8"));
	CHECK(wait_for(&s.gone, 1));
	close(fd);
	site_close(&s);
}

TEST(who_breaks_the_rules_is_told_and_gone)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, ASK "\x81\x05hello");
	CHECK(hear(fd, &in, "\x88\x02\x03\xea"));
	CHECK(hear(fd, &in, NULL));
	CHECK(wait_for(&s.gone, 1));
	close(fd);
	fd = dial(&s);
	SAY(fd, ASK);
	CHECK(hear(fd, &in, "\r\n\r\n"));
	close(fd);
	CHECK(wait_for(&s.gone, 2));
	site_close(&s);
}

TEST(the_owner_may_close_in_a_callback)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, ASK "\x82\x84" MASK "quit\x81\x85" MASK "hello");
	CHECK(hear(fd, &in, NULL));
	CHECK(memmem(in.data, in.len, "\x88\x02\x03\xe8", 4));
	CHECK(!memmem(in.data, in.len, "hello", 5));
	CHECK_INT(s.gone, 0);
	close(fd);
	site_close(&s);
}

TEST(what_is_no_handshake_is_refused)
{
	static const char *const bad[] = { "Sec-WebSocket-Version: 12\r\n"
					   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
					   "Sec-WebSocket-Version: 13\r\n"
					   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n",
					   "Sec-WebSocket-Version: 13\r\n" };
	struct site s;

	site_open(&s, NULL);
	for (size_t i = 0; i < array_len(bad); i++) {
		cleanup(buf_done) struct buf in = buf_make(1 << 20), ask = buf_make(4096);
		int fd = dial(&s);

		buf_addf(&ask, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
			       "Upgrade: websocket\r\n%s\r\n",
			 bad[i]);
		say(fd, ask.data, ask.len);
		CHECK(hear(fd, &in, "\r\n\r\n"));
		CHECK(str_starts(in.data, "HTTP/1.1 400 "));
		close(fd);
	}
	site_close(&s);
}

static uint64_t memory_kib(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	CHECK(f && fscanf(f, "%*u %llu", &pages) == 1);
	(void)fclose(f);
	return pages * 4;
}

/* As much of `total` as is taken; a server may also stop reading. */
static size_t pour(int fd, const char *piece, size_t len, size_t total)
{
	const struct timeval limit = { .tv_sec = 2 };
	const int small = 4096;
	size_t sent = 0;

	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0);
	while (sent < total) {
		ssize_t n = send(fd, piece + sent % len, len - sent % len, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	return sent;
}

TEST(who_pings_and_does_not_read_is_held_in_little_memory)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20), pings = buf_make(1 << 20);
	uint64_t before;
	struct site s;
	size_t sent;
	int fd;

	for (int i = 0; i < 10000; i++)
		buf_add(&pings, "\x89\x80" MASK, 6);
	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, ASK);
	CHECK(hear(fd, &in, "\r\n\r\n"));
	before = memory_kib();
	sent = pour(fd, pings.data, pings.len, 24UL << 20);
	printf("# %zu KiB of pings: memory %llu -> %llu KiB\n", sent >> 10,
	       (unsigned long long)before, (unsigned long long)memory_kib());
	CHECK(memory_kib() - before < 64UL * 1024);
	close(fd);
	CHECK(wait_for(&s.gone, 1));
	site_close(&s);
}

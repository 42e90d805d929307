#include "lib/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

static void pair(int sv[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) == 0);
}

static void add(struct packets *q, const char *text, int fd)
{
	struct buf b = buf_make(1 << 20);

	buf_adds(&b, text);
	packets_add(q, &b, fd);
}

TEST(packets_keep_their_bounds_and_their_descriptor)
{
	int sv[2], fd, pipefd[2];
	struct packets q;
	char data[64];

	pair(sv);
	CHECK(pipe2(pipefd, O_CLOEXEC) == 0);
	packets_init(&q);
	add(&q, "one", -1);
	add(&q, "second", pipefd[1]);
	CHECK(packets_flush(&q, sv[0]) == 0);
	CHECK_INT(packet_receive(sv[1], data, sizeof(data), &fd), 3);
	CHECK_INT(fd, -1);
	CHECK_INT(packet_receive(sv[1], data, sizeof(data), &fd), 6);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(write(fd, "x", 1) == 1 && read(pipefd[0], data, 1) == 1);
	packets_done(&q);
}

TEST(a_peer_that_does_not_read_makes_them_wait)
{
	int sv[2], fd;
	struct packets q;
	static char data[4096];
	size_t got = 0;

	pair(sv);
	packets_init(&q);
	memset(data, 'x', sizeof(data) - 1);
	for (int i = 0; i < 1000; i++)
		add(&q, data, -1);
	CHECK(packets_flush(&q, sv[0]) == 0);
	CHECK(q.bytes > 0 && q.first);
	while (got < 1000 * (sizeof(data) - 1)) {
		ssize_t n = packet_receive(sv[1], data, sizeof(data), &fd);

		if (n < 0)
			CHECK(packets_flush(&q, sv[0]) == 0);
		else
			got += (size_t)n;
	}
	CHECK_INT(q.bytes, 0);
	packets_done(&q);
}

TEST(a_packet_that_is_cut_is_refused_with_its_descriptor)
{
	int sv[2], fd, pipefd[2];
	struct packets q;
	char data[4];

	pair(sv);
	CHECK(pipe2(pipefd, O_CLOEXEC) == 0);
	packets_init(&q);
	add(&q, "too long for four", pipefd[1]);
	CHECK(packets_flush(&q, sv[0]) == 0);
	close(pipefd[1]);
	CHECK(packet_receive(sv[1], data, sizeof(data), &fd) < 0 && errno == EMSGSIZE);
	CHECK_INT(fd, -1);
	packets_done(&q);
	CHECK_INT(read(pipefd[0], data, 1), 0); /* every copy of it is closed */
}

TEST(a_peer_that_is_gone_is_told)
{
	int sv[2], fd;
	struct packets q;
	char data[4];

	pair(sv);
	close(sv[1]);
	packets_init(&q);
	add(&q, "x", -1);
	CHECK(packets_flush(&q, sv[0]) < 0);
	CHECK_INT(packet_receive(sv[0], data, sizeof(data), &fd), 0);
	packets_done(&q);
}

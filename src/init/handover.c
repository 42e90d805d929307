#include "init/handover.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG    64
#define RECEIVE_MS 1000

static socklen_t name_of(const char *id, struct sockaddr_un *ret)
{
	int n;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* An abstract name: its first byte is NUL, and its length is part of it. */
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "berth-context-%s", id);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int fail(int fd)
{
	int why = errno;

	close_fd(&fd);
	errno = why;
	return -1;
}

int handover_listen(const char *id)
{
	struct sockaddr_un name;
	socklen_t len = name_of(id, &name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&name, len) < 0 || listen(fd, BACKLOG) < 0)
		return fail(fd);
	return fd;
}

int handover_connect(const char *id)
{
	struct sockaddr_un name;
	socklen_t len = name_of(id, &name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&name, len) < 0)
		return fail(fd);
	return fd;
}

static int give(int to, const struct handover *h, int conn)
{
	struct handover copy = *h;
	struct iovec iov = { &copy, sizeof(copy) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &conn, sizeof(int));
	return sendmsg(to, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(copy) ? 0 : -1;
}

enum handover_word handover_give(int to, const struct handover *h, int conn)
{
	if (give(to, h, conn) < 0)
		return HANDOVER_NONE;
	for (;;) {
		struct pollfd fds[2] = { { to, POLLIN, 0 }, { conn, 0, 0 } };
		uint8_t word;

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			return read(to, &word, 1) == 1 ? (enum handover_word)word : HANDOVER_NONE;
		if (fds[1].revents)
			return HANDOVER_LEFT;
	}
}

int handover_receive(int from, struct handover *ret, int *conn)
{
	struct handover h;
	struct iovec iov = { &h, sizeof(h) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct pollfd wait = { from, POLLIN, 0 };
	struct cmsghdr *c;

	/* It is one of ours and sends at once; whoever else it is does not hold us up for long. */
	if (poll(&wait, 1, RECEIVE_MS) <= 0 ||
	    recvmsg(from, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != (ssize_t)sizeof(h))
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(conn, CMSG_DATA(c), sizeof(int));
	*ret = h;
	return 0;
}

void handover_answer(int to, enum handover_word word)
{
	uint8_t byte = (uint8_t)word;

	(void)send(to, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* who left need not be told */
}

#include "init/hub.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK_MS   30000
#define LEAVE_MS 5000

int hub_pair(int ret[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret);
}

int hub_send(int hub, const struct hub_packet *p, int fd)
{
	struct hub_packet copy = *p;
	struct iovec iov = { &copy, sizeof(copy) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(hub, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(copy) ? 0 : -1;
}

static int fd_of(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

int hub_receive(int hub, struct hub_packet *ret, int *fd)
{
	struct hub_packet p;
	struct iovec iov = { &p, sizeof(p) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(hub, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n != (ssize_t)sizeof(p))
		return -1;
	*fd = fd_of(&msg);
	p.attach.id[EXEC_ID_SIZE - 1] = '\0';
	*ret = p;
	return 1;
}

enum hub_word hub_ask(int hub, const struct hub_packet *p, int fd)
{
	struct hub_packet answer;
	int n, none = -1;

	if (hub_send(hub, p, fd) < 0)
		return HUB_NONE;
	while ((n = hub_receive(hub, &answer, &none)) == 0) {
		struct pollfd wait = { hub, POLLIN, 0 };

		if (poll(&wait, 1, ASK_MS) == 0)
			return HUB_NONE;
	}
	close_fd(&none); /* none comes with an answer */
	return n < 0 ? HUB_NONE : answer.word;
}

void hub_leave(int hub, void (*late)(void *data, int fd), void *data)
{
	struct hub_packet p = { .word = HUB_LEAVE };
	int n, fd;

	if (hub < 0 || hub_send(hub, &p, -1) < 0)
		return;
	do {
		struct pollfd wait = { hub, POLLIN, 0 };

		fd = -1;
		n = poll(&wait, 1, LEAVE_MS) > 0 ? hub_receive(hub, &p, &fd) : -1;
		if (fd >= 0)
			late(data, fd);
	} while (n >= 0 && p.word != HUB_YES);
}

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

bool hub_holds(const struct hub *h)
{
	return h->held_len > 0;
}

int hub_take(struct hub *h, struct hub_packet *ret, int *fd)
{
	if (h->held_len == 0)
		return hub_receive(h->fd, ret, fd);
	*ret = h->held[0].packet;
	*fd = h->held[0].fd;
	memmove(h->held, h->held + 1, --h->held_len * sizeof(h->held[0]));
	return 1;
}

/* For hub_take(). An answer that comes too late to be of use is none of it. */
static void hold(struct hub *h, const struct hub_packet *p, int fd)
{
	if (p->number != 0 || h->held_len == HUB_HELD_MAX) {
		close_fd(&fd); /* the process that sent it sees that it was not taken */
		return;
	}
	h->held[h->held_len].packet = *p;
	h->held[h->held_len++].fd = fd;
}

static int ask(struct hub *h, struct hub_packet *p, int fd)
{
	if (++h->number == 0)
		h->number = 1;
	p->number = h->number;
	return hub_send(h->fd, p, fd);
}

enum hub_word hub_ask(struct hub *h, struct hub_packet *p, int fd)
{
	if (ask(h, p, fd) < 0)
		return HUB_NONE;
	for (;;) {
		struct pollfd wait = { h->fd, POLLIN, 0 };
		struct hub_packet got;
		int with = -1, n = hub_receive(h->fd, &got, &with);

		if (n > 0 && got.number == h->number) {
			close_fd(&with); /* none comes with an answer */
			p->asked = got.asked;
			return got.word;
		}
		if (n > 0)
			hold(h, &got, with);
		if (n < 0 || (n == 0 && poll(&wait, 1, ASK_MS) == 0))
			return HUB_NONE;
	}
}

void hub_leave(struct hub *h, void (*late)(void *data, int fd), void *data)
{
	struct hub_packet p = { .word = HUB_LEAVE };
	int n, fd;

	if (h->fd < 0 || ask(h, &p, -1) < 0)
		return;
	do {
		struct pollfd wait = { h->fd, POLLIN, 0 };

		fd = -1;
		n = hub_holds(h) || poll(&wait, 1, LEAVE_MS) > 0 ? hub_take(h, &p, &fd) : -1;
		if (fd >= 0)
			late(data, fd);
	} while (n >= 0 && (n == 0 || p.number != h->number));
}

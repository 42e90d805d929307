#include "init/pid1-broker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/errno-map.h"

#define ASK_MS         30000
#define LEAVE_MS       5000
#define BUSY_TRIES_MAX 300 /* for what a killed one started to end */
#define BUSY_WAIT_MS   10

int broker_pair(int ret[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret);
}

int broker_send(int broker, const struct broker_packet *p, int fd)
{
	struct broker_packet copy = *p;
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
	return sendmsg(broker, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(copy) ? 0 : -1;
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

int broker_receive(int broker, struct broker_packet *ret, int *fd)
{
	struct broker_packet p;
	struct iovec iov = { &p, sizeof(p) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(broker, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n != (ssize_t)sizeof(p))
		return -1;
	*fd = fd_of(&msg);
	p.attach.id[EXEC_ID_SIZE - 1] = '\0';
	*ret = p;
	return 1;
}

bool broker_holds(const struct broker *h)
{
	return h->held_len > 0;
}

int broker_listens(const struct broker *h)
{
	return h->left ? -1 : h->fd;
}

int broker_take(struct broker *h, struct broker_packet *ret, int *fd)
{
	if (h->held_len == 0)
		return broker_receive(h->fd, ret, fd);
	*ret = h->held[0].packet;
	*fd = h->held[0].fd;
	memmove(h->held, h->held + 1, --h->held_len * sizeof(h->held[0]));
	return 1;
}

/* For broker_take(). An answer that comes too late to be of use is none of it. */
static void hold(struct broker *h, const struct broker_packet *p, int fd)
{
	if (p->number != 0 || h->held_len == BROKER_HELD_MAX) {
		close_fd(&fd); /* the process that sent it sees that it was not taken */
		return;
	}
	h->held[h->held_len].packet = *p;
	h->held[h->held_len++].fd = fd;
}

static int ask(struct broker *h, struct broker_packet *p, int fd)
{
	if (++h->number == 0)
		h->number = 1;
	p->number = h->number;
	return broker_send(h->fd, p, fd);
}

enum broker_word broker_ask(struct broker *h, struct broker_packet *p, int fd)
{
	if (ask(h, p, fd) < 0)
		return BROKER_NONE;
	for (;;) {
		struct pollfd wait = { h->fd, POLLIN, 0 };
		struct broker_packet got;
		int with = -1, n = broker_receive(h->fd, &got, &with);

		if (n > 0 && got.number == h->number) {
			close_fd(&with); /* none comes with an answer */
			p->asked = got.asked;
			p->value = got.value;
			return got.word;
		}
		if (n > 0)
			hold(h, &got, with);
		if (n < 0 || (n == 0 && poll(&wait, 1, ASK_MS) == 0))
			return BROKER_NONE;
	}
}

enum broker_word broker_ask_on(struct broker *h, struct broker_packet *p, int fd)
{
	enum broker_word answer = broker_ask(h, p, fd);

	for (int i = 0; answer == BROKER_BUSY && i < BUSY_TRIES_MAX; i++) {
		(void)poll(NULL, 0, BUSY_WAIT_MS);
		answer = broker_ask(h, p, fd);
	}
	return answer;
}

int broker_unseen(struct err *e)
{
	err_set(e, ERR_CONFLICT, "a process that kept account of what was left was killed");
	return err_reason(e, REASON_LEFT_UNKNOWN, 0);
}

void broker_leave(struct broker *h, void (*late)(void *data, int fd), void *data)
{
	struct broker_packet p = { .word = BROKER_LEAVE };
	int n, fd;

	if (broker_listens(h) < 0)
		return;
	h->left = true; /* what was started is still pid 1's to find: we go on asking */
	if (ask(h, &p, -1) < 0)
		return;
	do {
		struct pollfd wait = { h->fd, POLLIN, 0 };

		fd = -1;
		n = broker_holds(h) || poll(&wait, 1, LEAVE_MS) > 0 ? broker_take(h, &p, &fd) : -1;
		if (fd >= 0)
			late(data, fd);
	} while (n >= 0 && (n == 0 || p.number != h->number));
}

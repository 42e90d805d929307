#include "lib/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct packet {
	struct packet *next;
	struct buf data;
	int fd;
};

/* Room for one descriptor, aligned as the kernel wants it. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static void packet_free(struct packet *p)
{
	buf_done(&p->data);
	close_fd(&p->fd);
	free(p);
}

void packets_init(struct packets *q)
{
	*q = (struct packets){ 0 };
	q->last = &q->first;
}

void packets_done(struct packets *q)
{
	while (q->first) {
		struct packet *p = q->first;

		q->first = p->next;
		packet_free(p);
	}
	packets_init(q);
}

void packets_add(struct packets *q, struct buf *data, int fd)
{
	struct packet *p = xcalloc(1, sizeof(*p));

	p->data = *data;
	*data = buf_make(data->max);
	p->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	q->bytes += p->data.len;
	*q->last = p;
	q->last = &p->next;
}

static ssize_t packet_send(int sock, const struct packet *p)
{
	struct iovec iov = { p->data.data, p->data.len };
	union control control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (p->fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &p->fd, sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int packets_flush(struct packets *q, int sock)
{
	while (q->first) {
		struct packet *p = q->first;

		if (packet_send(sock, p) < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		q->first = p->next;
		q->bytes -= p->data.len;
		packet_free(p);
	}
	q->last = &q->first;
	return 0;
}

ssize_t packet_receive(int sock, void *data, size_t size, int *fd)
{
	struct iovec iov = { data, size };
	union control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (n < 0)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		close_fd(fd);
		*fd = -1;
		errno = EMSGSIZE;
		return -1;
	}
	return n;
}

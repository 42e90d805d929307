#include "init/handover.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIVE_MS 1000

int handover_name(const char *id, char ret[EXEC_ID_SIZE], struct err *e)
{
	int n = snprintf(ret, EXEC_ID_SIZE, ":%s", id);

	if (n < 0 || n >= EXEC_ID_SIZE)
		return err_set(e, ERR_INVALID, "a context's id is too long: %.80s", id);
	return 0;
}

enum broker_word handover_reach(struct broker *broker, const char *name, enum context_verb verb,
				int *to)
{
	struct broker_packet p = { .word = BROKER_GIVE, .attach = { .offset = { verb } } };
	enum broker_word answer;
	int pair[2];

	memcpy(p.attach.id, name, strlen(name) + 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return BROKER_BUSY;
	answer = broker_ask(broker, &p, pair[1]);
	close_fd(&pair[1]);
	if (answer == BROKER_YES)
		*to = pair[0];
	else
		close_fd(&pair[0]);
	return answer;
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

	/* It is one of ours and sends at once, unless it was killed. */
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

	(void)send(to, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* one that left need not be told */
}

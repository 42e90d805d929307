#include "init/wait-port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_MS 50  /* between two attempts; the peer may close meanwhile */
#define DIAL_MS 500 /* for a listener to take a connection */

/* Only a connection that is taken shows that it works, and it works on either kind of address. */
static bool dial(const struct sockaddr *addr, socklen_t len)
{
	const int how = SOCK_STREAM | SOCK_NONBLOCK;
	cleanup(close_fd) int fd = socket(addr->sa_family, how | SOCK_CLOEXEC, 0);
	struct pollfd done = { fd, POLLOUT, 0 };
	int error = 0;
	socklen_t size = sizeof(error);

	if (fd < 0)
		return false;
	if (connect(fd, addr, len) == 0)
		return true;
	return poll(&done, 1, DIAL_MS) > 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

static bool is_up(uint16_t port)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port),
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	return dial((const struct sockaddr *)&four, sizeof(four)) ||
	       dial((const struct sockaddr *)&six, sizeof(six));
}

void wait_port_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	cleanup(buf_done) struct buf frame = buf_make(64);
	struct pollfd peer = { p->fd, POLLIN, 0 };
	uint32_t port;
	struct err e;

	(void)broker;
	if (frame_u32(request, &port, &e) < 0 || port == 0 || port > 65535) {
		err_set(&e, ERR_INVALID, "a port is 1 to 65535");
		frame_conn_refuse(p, &e);
		return;
	}
	frame_conn_took(p, request);
	while (!is_up((uint16_t)port))
		if (poll(&peer, 1, LOOK_MS) != 0)
			return; /* it closed, or speaks, which no peer does while it waits */
	frame_add_u32(&frame, FRAME_PORT, port);
	frame_conn_put_frame(p, &frame);
	if (frame_conn_flush(p) < 0)
		return; /* it left first */
}

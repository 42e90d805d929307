#include "egress/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "egress/conn.h"
#include "egress/dns.h"
#include "egress/nameserver.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/str.h"
#include "lib/time.h"
#include "proto/router.h"

#define RETRY_MS     200
#define TURN_MAX     64 /* of one socket, then the others have their turn */
#define MESSAGE_SIZE 4096
#define PORT_NAMES   53

static void on_listener_closed(uv_handle_t *handle)
{
	struct listener *d = handle->data;

	close(d->fd);
	free(d);
}

static void listener_close(struct listener *d)
{
	if (!d)
		return;
	uv_poll_stop(&d->poll);
	uv_close((uv_handle_t *)&d->poll, on_listener_closed);
}

/* ---- TCP ---- */

static void on_connection(struct listener *d)
{
	for (int i = 0; i < TURN_MAX; i++) {
		struct sockaddr_in from = { 0 }, to = { 0 };
		socklen_t from_len = sizeof(from), to_len = sizeof(to);
		int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
		int fd = accept4(d->fd, (struct sockaddr *)&from, &from_len, flags); /* CLOEXEC */

		if (fd < 0)
			return;
		/* TPROXY: the address of this end is the one that was meant. */
		if (from.sin_family != AF_INET ||
		    getsockname(fd, (struct sockaddr *)&to, &to_len) < 0 ||
		    to.sin_family != AF_INET) {
			close(fd);
			continue;
		}
		conn_begin(d->egress, fd, ntohl(from.sin_addr.s_addr), ntohl(to.sin_addr.s_addr),
			   ntohs(to.sin_port));
	}
}

/* ---- UDP: names, and nothing else ---- */

union ancillary {
	char bytes[CMSG_SPACE(sizeof(struct sockaddr_in)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct cmsghdr align;
};

static bool meant(struct msghdr *msg, struct sockaddr_in *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_ORIGDSTADDR &&
		    c->cmsg_len == CMSG_LEN(sizeof(*ret))) {
			memcpy(ret, CMSG_DATA(c), sizeof(*ret));
			return true;
		}
	return false;
}

/* From the address that was asked, whichever it is. */
static void reply(const struct listener *d, struct sockaddr_in *to, const struct sockaddr_in *from,
		  const struct buf *data)
{
	struct iovec iov = { data->data, data->len };
	union ancillary control = { 0 };
	struct in_pktinfo info = { .ipi_spec_dst = from->sin_addr };
	struct msghdr msg = { .msg_name = to,
			      .msg_namelen = sizeof(*to),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = CMSG_SPACE(sizeof(info)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	(void)!sendmsg(d->fd, &msg, MSG_DONTWAIT); /* DNS asks again */
}

static void take_datagram(struct listener *d, struct sockaddr_in *from,
			  const struct sockaddr_in *to, struct bytes message)
{
	struct box *b = boxes_at(&d->egress->boxes, ntohl(from->sin_addr.s_addr));
	cleanup(buf_done) struct buf out = buf_make(DNS_MESSAGE_MAX);
	char text[INET_ADDRSTRLEN];

	if (!b)
		return;
	if (ntohs(to->sin_port) != PORT_NAMES) {
		inet_ntop(AF_INET, &to->sin_addr, text, sizeof(text));
		return egress_refuse(d->egress, b,
				     &(struct refusal){ "udp", text, "only TCP and DNS",
							ntohs(to->sin_port) });
	}
	if (nameserver_answer(d->egress, b, message, &out) && !buf_overflowed(&out))
		reply(d, from, to, &out);
}

static void on_datagram(struct listener *d)
{
	uint8_t data[MESSAGE_SIZE];

	for (int i = 0; i < TURN_MAX; i++) {
		struct sockaddr_in from, to;
		union ancillary control;
		struct iovec iov = { data, sizeof(data) };
		struct msghdr msg = { .msg_name = &from,
				      .msg_namelen = sizeof(from),
				      .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control.bytes,
				      .msg_controllen = sizeof(control.bytes) };
		ssize_t n = recvmsg(d->fd, &msg, MSG_DONTWAIT);

		if (n < 0)
			return;
		if (msg.msg_namelen == sizeof(from) && from.sin_family == AF_INET &&
		    !(msg.msg_flags & MSG_TRUNC) && meant(&msg, &to))
			take_datagram(d, &from, &to, (struct bytes){ data, (size_t)n });
	}
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct listener *d = poll->data;

	(void)events;
	if (status < 0)
		return;
	if (d->datagrams)
		on_datagram(d);
	else
		on_connection(d);
}

/* ---- what berth-node hands over ---- */

static int take_listener(struct egress *g, size_t at, enum router_socket_kind kind, int fd,
			 struct err *e)
{
	int one = 1;
	struct listener *d;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
	    (kind == ROUTER_UDP &&
	     setsockopt(fd, SOL_IP, IP_RECVORIGDSTADDR, &one, sizeof(one)) < 0))
		return err_sys(e, errno, "a socket of berth-node's");
	d = xcalloc(1, sizeof(*d));
	d->egress = g;
	d->fd = fd;
	d->datagrams = kind == ROUTER_UDP;
	uv_poll_init(&g->loop, &d->poll, fd);
	d->poll.data = d;
	uv_poll_start(&d->poll, UV_READABLE, on_event);
	g->listeners[at] = d;
	return 0;
}

static void on_node_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_retry(uv_timer_t *timer);

/* The listeners stay open: berth-node may be back with the same, or not at all. */
static void lost(struct egress *g)
{
	uv_poll_stop(g->node_poll);
	uv_close((uv_handle_t *)take_ptr(g->node_poll), on_node_closed);
	close_fd(&g->node_fd);
	g->node_fd = -1;
	log_event(LOG_INFO, "berth-egress lost berth-node", NULL);
	uv_timer_start(&g->node_retry, on_retry, RETRY_MS, 0);
}

static void on_node(uv_poll_t *poll, int status, int events)
{
	struct egress *g = poll->data;
	uint8_t word[ROUTER_PACKET_MAX];
	enum router_socket_kind kind;
	struct err e;
	ssize_t n;
	int fd;

	(void)events;
	n = status < 0 ? 0 : packet_receive(g->node_fd, word, sizeof(word), &fd);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		return lost(g);
	if (fd < 0)
		return;
	if (g->listener_count == EGRESS_LISTENERS_MAX) {
		close(fd);
		return;
	}
	listener_close(g->listeners[g->listener_count]);
	g->listeners[g->listener_count] = NULL;
	if (router_socket_decode((struct bytes){ word, (size_t)n }, &kind, &e) < 0 ||
	    take_listener(g, g->listener_count, kind, fd, &e) < 0) {
		log_event(LOG_ERROR, "egress listener cannot be used", "why", e.msg, NULL);
		close(fd);
		return;
	}
	g->listener_count++;
	log_event(LOG_INFO, "egress listener is open", NULL);
}

static int dial(const char *path, struct err *e)
{
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	cleanup(close_fd) int fd = socket(AF_UNIX, type, 0); /* CLOEXEC */
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (fd < 0)
		return err_sys(e, errno, "socket");
	if (!str_copy(at.sun_path, sizeof(at.sun_path), path))
		return err_set(e, ERR_INVALID, "socket path too long: %.80s", path);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_sys(e, errno, "connect to %.80s", path);
	return take_fd(fd);
}

static void on_retry(uv_timer_t *timer)
{
	struct egress *g = timer->data;
	struct err e;

	g->node_fd = dial(g->settings.node_socket, &e);
	if (g->node_fd < 0) {
		uv_timer_start(timer, on_retry, RETRY_MS, 0);
		return;
	}
	g->listener_count = 0; /* what comes now takes their places */
	g->node_poll = xcalloc(1, sizeof(*g->node_poll));
	uv_poll_init(&g->loop, g->node_poll, g->node_fd);
	g->node_poll->data = g;
	uv_poll_start(g->node_poll, UV_READABLE, on_node);
}

void listeners_open(struct egress *g)
{
	g->node_fd = -1;
	uv_timer_init(&g->loop, &g->node_retry);
	g->node_retry.data = g;
	uv_timer_start(&g->node_retry, on_retry, 0, 0);
}

void listeners_close(struct egress *g)
{
	if (g->node_poll)
		lost(g);
	uv_close((uv_handle_t *)&g->node_retry, NULL);
	for (size_t i = 0; i < EGRESS_LISTENERS_MAX; i++)
		listener_close(take_ptr(g->listeners[i]));
}

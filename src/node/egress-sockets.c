#include "node/egress-sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/packet.h"
#include "node/listen-socket.h"
#include "node/node.h"

struct egress_client {
	struct node *node;
	int fd;
	uv_poll_t poll; /* data is the client */
	struct egress_client *next;
};

static void on_client_closed(uv_handle_t *handle)
{
	struct egress_client *t = handle->data;

	close(t->fd);
	free(t);
}

static void client_close(struct egress_client *t)
{
	struct egress_client **at = &t->node->egress_sockets->clients;

	while (*at && *at != t)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = t->next;
	uv_poll_stop(&t->poll);
	uv_close((uv_handle_t *)&t->poll, on_client_closed);
}

/* Nothing is ever said to us here, so whatever comes is the end. */
static void on_taker_event(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	log_event(LOG_INFO, "berth-egress is gone", NULL);
	client_close(poll->data);
}

/* Two small packets into an empty queue: they go at once, or never. */
static int hand_over(const struct router *r, int fd)
{
	struct packets out;
	int done;

	packets_init(&out);
	for (int kind = ROUTER_NONE + 1; kind < ROUTER_SOCKET_COUNT; kind++) {
		struct buf data = buf_make(ROUTER_PACKET_MAX);

		router_socket_encode(&data, (enum router_socket_kind)kind);
		packets_add(&out, &data, r->sockets[kind]);
	}
	done = packets_flush(&out, fd) < 0 || out.first ? -1 : 0;
	packets_done(&out);
	return done;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct node *n = poll->data;
	int fd = listen_socket_accept(n->egress_sockets->listener, n->egress_sockets->user);
	struct egress_client *t;

	(void)status, (void)events;
	if (fd < 0)
		return;
	if (hand_over(&n->router, fd) < 0) {
		close(fd);
		return;
	}
	log_event(LOG_INFO, "berth-egress has the router's sockets", NULL);
	t = xcalloc(1, sizeof(*t));
	t->node = n;
	t->fd = fd;
	t->next = n->egress_sockets->clients;
	n->egress_sockets->clients = t;
	uv_poll_init(&n->loop, &t->poll, fd);
	t->poll.data = t;
	uv_poll_start(&t->poll, UV_READABLE, on_taker_event);
}

int egress_sockets_open(struct node *n, struct err *e)
{
	struct egress_sockets *h = n->egress_sockets;

	if (listen_socket_open(n->settings.egress_socket, h->user, &h->listener, e) < 0)
		return -1;
	uv_poll_init(&n->loop, &h->poll, h->listener);
	h->poll.data = n;
	uv_poll_start(&h->poll, UV_READABLE, on_connection);
	return 0;
}

void egress_sockets_close(struct node *n)
{
	struct egress_sockets *h = n->egress_sockets;

	while (h->clients)
		client_close(h->clients);
	if (h->listener < 0)
		return;
	uv_close((uv_handle_t *)&h->poll, NULL);
	close_fd(&h->listener);
	h->listener = -1;
	(void)unlink(n->settings.egress_socket);
}

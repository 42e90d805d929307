#include "node/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/loop.h"
#include "node/listen-socket.h"
#include "node/node.h"
#include "node/verbs.h"

static void on_link_closed(uv_handle_t *handle)
{
	struct link *link = handle->data;

	/* Not sooner: a function that tells the followers may be in the middle of their list. */
	verb_forget_followers(link->node);
	close(link->fd);
	free(link);
}

static void link_close(struct link *link)
{
	struct link **at = &link->node->links;

	if (uv_is_closing((uv_handle_t *)&link->poll))
		return;
	while (*at && *at != link)
		at = &(*at)->next;
	if (*at)
		*at = link->next;
	for (struct call *c = link->calls; c; c = c->next)
		c->link = NULL;
	link->calls = NULL;
	packets_done(&link->out);
	uv_poll_stop(&link->poll);
	uv_close((uv_handle_t *)&link->poll, on_link_closed);
}

static void on_link_event(uv_poll_t *poll, int status, int events);

/* Send what waits; what does not fit is sent when the peer reads again. */
static void link_flush(struct link *link)
{
	if (packets_flush(&link->out, link->fd) < 0)
		return link_close(link);
	uv_poll_start(&link->poll, UV_READABLE | (link->out.first ? UV_WRITABLE : 0),
		      on_link_event);
}

static void link_send(struct link *link, struct buf *data, int fd)
{
	packets_add(&link->out, data, fd);
	if (link->out.bytes > LINK_QUEUE_MAX) {
		log_event(LOG_WARN, "connection closed: the peer does not read answers", NULL);
		return link_close(link);
	}
	link_flush(link);
}

static void call_end(struct call *c)
{
	if (c->link) {
		struct call **at = &c->link->calls;

		while (*at && *at != c)
			at = &(*at)->next;
		if (*at)
			*at = c->next;
		c->link->call_count--;
	}
	close_fd(&c->fd);
	free(c);
}

static void call_send(struct call *c, enum node_kind kind, const void *record, int fd)
{
	struct buf data = buf_make(NODE_PACKET_MAX);

	if (!c->link)
		return;
	node_encode(&data, c->verb, kind, c->id, record);
	link_send(c->link, &data, fd);
}

void call_part(struct call *c, const void *record)
{
	call_send(c, NODE_PART, record, -1);
}

void call_reply(struct call *c, const void *record, int fd)
{
	call_send(c, NODE_REPLY, record, fd);
	call_end(c);
}

void call_fail(struct call *c, const struct err *why)
{
	struct buf data = buf_make(NODE_PACKET_MAX);

	if (c->link) {
		node_encode_error(&data, c->verb, c->id, why);
		link_send(c->link, &data, -1);
	}
	call_end(c);
}

/* The packet becomes a call, or the error says why it cannot. */
static int call_make(struct link *link, const struct node_head *h, int fd, struct call **ret,
		     struct err *e)
{
	struct call *c;

	if (h->kind != NODE_REQUEST)
		return err_set(e, ERR_INVALID, "only requests come this way");
	if (link->call_count == LINK_CALLS_MAX)
		return err_set(e, ERR_BUSY, "more than %d calls at once", LINK_CALLS_MAX);
	c = xcalloc(1, sizeof(*c));
	if (node_body_decode(h, &c->ask, e) < 0) {
		free(c);
		return -1;
	}
	c->node = link->node;
	c->link = link;
	c->verb = h->verb;
	c->id = h->id;
	c->fd = fd;
	c->next = link->calls;
	link->calls = c;
	link->call_count++;
	*ret = c;
	return 0;
}

static int link_packet(struct link *link, struct bytes packet, int fd, struct err *e)
{
	struct buf data = buf_make(NODE_PACKET_MAX);
	struct node_head h;
	struct call *c = NULL;

	if (node_head_decode(packet, &h, e) < 0) {
		close_fd(&fd);
		return -1;
	}
	if (call_make(link, &h, fd, &c, e) < 0) {
		close_fd(&fd);
		node_encode_error(&data, h.verb, h.id, e);
		link_send(link, &data, -1);
		return 0;
	}
	verb_begin(c);
	return 0;
}

static int link_receive(struct link *link, struct err *e)
{
	static uint8_t data[NODE_PACKET_MAX];
	int fd;
	ssize_t n = packet_receive(link->fd, data, sizeof(data), &fd);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return err_sys(e, n ? errno : ECONNRESET, "receive");
	return link_packet(link, (struct bytes){ data, (size_t)n }, fd, e);
}

static void on_link_event(uv_poll_t *poll, int status, int events)
{
	struct link *link = poll->data;
	struct err e;

	if (status < 0 || ((events & UV_READABLE) && link_receive(link, &e) < 0)) {
		link_close(link);
		return;
	}
	if ((events & UV_WRITABLE) && !uv_is_closing((uv_handle_t *)poll))
		link_flush(link);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct node *n = poll->data;
	int fd = listen_socket_accept(n->listen_fd, n->peer_uid);
	struct link *link;

	(void)status, (void)events;
	if (fd < 0)
		return;
	link = xcalloc(1, sizeof(*link));
	link->node = n;
	link->fd = fd;
	packets_init(&link->out);
	link->next = n->links;
	n->links = link;
	uv_poll_init(&n->loop, &link->poll, link->fd);
	link->poll.data = link;
	uv_poll_start(&link->poll, UV_READABLE, on_link_event);
}

int link_listen(struct node *n, struct err *e)
{
	if (listen_socket_open(n->settings.socket, n->peer_uid, &n->listen_fd, e) < 0)
		return -1;
	uv_poll_init(&n->loop, &n->listener, n->listen_fd);
	n->listener.data = n;
	uv_poll_start(&n->listener, UV_READABLE, on_connection);
	return 0;
}

void link_close_all(struct node *n)
{
	while (n->links)
		link_close(n->links);
	if (n->listen_fd < 0)
		return;
	uv_close((uv_handle_t *)&n->listener, NULL);
	(void)unlink(n->settings.socket);
}

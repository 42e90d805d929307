#include "api/node-link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/str.h"

#define RETRY_FIRST_MS 50
#define RETRY_LATER_MS 500

struct node_call {
	uint64_t id;
	enum node_verb verb;
	const struct node_call_events *events;
	void *data;
	struct node_call *next;
};

static struct node_call **find(struct node_link *link, uint64_t id)
{
	struct node_call **at = &link->calls[id % NODE_LINK_BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static void finish(struct node_call **at, const union node_any *record, int *fd,
		   const struct err *why)
{
	struct node_call *c = *at;

	*at = c->next;
	c->events->on_done(c->data, record, fd, why);
	free(c);
}

static void fail_all(struct node_link *link, const char *because)
{
	struct err e;
	int no_fd = -1;

	err_set(&e, ERR_BUSY, "berth-node cannot be reached: %s", because);
	err_fix(&e, "Is berth-node running? 'berth doctor' on the host says more.");
	for (size_t i = 0; i < NODE_LINK_BUCKETS; i++) {
		struct node_call *calls = take_ptr(link->calls[i]); /* not those begun meanwhile */

		while (calls)
			finish(&calls, NULL, &no_fd, &e);
	}
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_retry(uv_timer_t *timer);

static void drop(struct node_link *link, const char *because)
{
	if (link->poll) {
		uv_poll_stop(link->poll);
		uv_close((uv_handle_t *)take_ptr(link->poll), on_poll_closed);
	}
	close_fd(&link->fd);
	link->fd = -1;
	packets_done(&link->out);
	if (link->up)
		log_event(LOG_WARN, "lost berth-node", "why", because, NULL);
	link->up = false;
	if (!uv_is_closing((uv_handle_t *)&link->retry))
		uv_timer_start(&link->retry, on_retry, RETRY_FIRST_MS, 0);
	fail_all(link, because);
}

static void take_packet(struct node_link *link, struct bytes packet, int *fd)
{
	union node_any record = { 0 };
	struct node_head h;
	struct node_call **at;
	struct err e;

	if (node_head_decode(packet, &h, &e) < 0)
		return drop(link, e.msg);
	at = find(link, h.id);
	if (!*at || (*at)->verb != h.verb)
		return; /* of a call we no longer wait for */
	if (h.kind == NODE_ERROR) {
		node_error_decode(&h, &e);
		return finish(at, NULL, fd, &e);
	}
	if (node_body_decode(&h, &record, &e) < 0)
		return finish(at, NULL, fd, &e);
	if (h.kind == NODE_REPLY)
		return finish(at, &record, fd, NULL);
	if (h.kind == NODE_PART && (*at)->events->on_part)
		(*at)->events->on_part((*at)->data, &record);
}

static void on_readable(struct node_link *link)
{
	uint8_t data[NODE_PACKET_MAX];
	int fd;
	ssize_t n = packet_receive(link->fd, data, sizeof(data), &fd);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		return drop(link, n ? strerror(errno) : "it closed the connection");
	take_packet(link, (struct bytes){ data, (size_t)n }, &fd);
	close_fd(&fd); /* unless somebody took it */
}

static void on_event(uv_poll_t *poll, int status, int events);

static void flush(struct node_link *link)
{
	if (packets_flush(&link->out, link->fd) < 0)
		return drop(link, strerror(errno));
	uv_poll_start(link->poll, UV_READABLE | (link->out.first ? UV_WRITABLE : 0), on_event);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct node_link *link = poll->data;

	if (status < 0)
		return drop(link, uv_strerror(status));
	if (events & UV_READABLE)
		on_readable(link);
	if ((events & UV_WRITABLE) && link->poll == poll)
		flush(link);
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
	struct node_link *link = timer->data;
	struct err e;
	int fd = dial(link->path, &e);

	if (fd < 0) {
		uv_timer_start(timer, on_retry, RETRY_LATER_MS, 0);
		packets_done(&link->out); /* what we say failed must not be done later */
		return fail_all(link, e.msg);
	}
	link->fd = fd;
	link->up = true;
	link->poll = xcalloc(1, sizeof(*link->poll));
	uv_poll_init(link->loop, link->poll, fd);
	link->poll->data = link;
	flush(link);
	if (link->up && link->on_up)
		link->on_up(link, link->data);
}

void node_link_open(struct node_link *link, uv_loop_t *loop, const char *path)
{
	link->loop = loop;
	link->path = path;
	link->fd = -1;
	packets_init(&link->out);
	uv_timer_init(loop, &link->retry);
	link->retry.data = link;
	uv_timer_start(&link->retry, on_retry, 0, 0);
}

void node_link_close(struct node_link *link)
{
	uv_close((uv_handle_t *)&link->retry, NULL);
	drop(link, "berthd is ending");
}

void node_call(struct node_link *link, enum node_verb verb, const void *record, int fd,
	       const struct node_call_events *events, void *data)
{
	struct buf packet = buf_make(NODE_PACKET_MAX);
	struct node_call *c = xcalloc(1, sizeof(*c));
	struct node_call **bucket;

	c->id = ++link->next_id;
	c->verb = verb;
	c->events = events;
	c->data = data;
	bucket = &link->calls[c->id % NODE_LINK_BUCKETS];
	c->next = *bucket;
	*bucket = c;
	node_encode(&packet, verb, NODE_REQUEST, c->id, record);
	packets_add(&link->out, &packet, fd);
	/* While it is down, the packet waits for the next connect, which comes or fails it. */
	if (!link->up)
		return;
	/*
	 * Not flushed through drop(): that would call on_done() from here. A dead
	 * peer makes the poll readable, and then it is dropped from the loop.
	 */
	(void)!packets_flush(&link->out, link->fd);
	uv_poll_start(link->poll, UV_READABLE | (link->out.first ? UV_WRITABLE : 0), on_event);
}

#include "berthd/runtime/node-link.h"

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
#define SECOND         1000
#define MINUTE         (60 * SECOND)
/* A berthd that was itself stopped first reads what came meanwhile. */
#define LATE_MS        SECOND

/* Longer than berth-node takes at its worst: past it, it is stopped or stuck. */
/* clang-format off */
static const uint32_t usual_deadlines[NODE_VERB_COUNT] = {
	[NODE_IMAGE]		= 30 * MINUTE, /* from part to part: unpacking tells little */
	[NODE_CREATE]		= 3 * MINUTE,
	[NODE_START]		= 3 * MINUTE,
	[NODE_OBSERVE]		= 30 * SECOND,
	[NODE_CONNECT]		= 30 * SECOND,
	[NODE_STOP]		= 2 * MINUTE,
	[NODE_DESTROY]		= 2 * MINUTE,
	[NODE_INVENTORY]	= 1 * MINUTE, /* from part to part */
	[NODE_CAPACITY]		= 20 * SECOND,
	[NODE_USAGE]		= 20 * SECOND,
	[NODE_LEASE]		= 2 * MINUTE, /* a kill is answered when nothing runs any more */
	[NODE_LIMIT]		= 1 * MINUTE,
	[NODE_SYNC]		= 2 * MINUTE, /* all that is not on the disk yet */
	[NODE_GROUP]		= 30 * SECOND,
	[NODE_KILLED]		= 20 * SECOND,
	[NODE_PROCESSES]	= 20 * SECOND,
};
/* clang-format on */

struct node_call {
	uint64_t id;
	struct node_link *link;
	uv_timer_t deadline;
	bool follows; /* berth-node tells what ends, once its list is through: */
	bool endless;
	bool late;
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

static void on_call_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void finish(struct node_call **at, const union node_any *record, int *fd,
		   const struct err *why)
{
	struct node_call *c = *at;

	*at = c->next;
	uv_close((uv_handle_t *)&c->deadline, on_call_closed);
	c->events->on_done(c->data, record, fd, why);
}

static void on_deadline(uv_timer_t *timer);

static void set_deadline(struct node_call *c)
{
	c->late = false;
	uv_timer_start(&c->deadline, on_deadline, c->link->deadlines[c->verb], 0);
}

static void on_deadline(uv_timer_t *timer)
{
	struct node_call *c = timer->data;
	struct node_call **at = find(c->link, c->id);
	int no_fd = -1;
	struct err e;

	if (!c->late) {
		c->late = true;
		uv_timer_start(timer, on_deadline, LATE_MS, 0);
		return;
	}
	err_set(&e, ERR_BUSY, "berth-node has not answered \"%s\" in %u ms: what it did is unknown",
		node_verb_row(c->verb)->name, c->link->deadlines[c->verb]);
	err_fix(&e, "Try again later; 'berth doctor' on the host says if berth-node is stuck.");
	err_reason(&e, NODE_UNANSWERED, 0);
	log_event(LOG_WARN, "berth-node does not answer", "verb", node_verb_row(c->verb)->name,
		  NULL);
	if (*at)
		finish(at, NULL, &no_fd, &e);
}

bool node_unanswered(const struct err *why)
{
	return why->reason && strcmp(why->reason, NODE_UNANSWERED) == 0;
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
		log_event(LOG_WARN, "berthd lost berth-node", "why", because, NULL);
	link->up = false;
	if (!uv_is_closing((uv_handle_t *)&link->retry))
		uv_timer_start(&link->retry, on_retry, RETRY_FIRST_MS, 0);
	fail_all(link, because);
}

static void take_part(struct node_call *c, const union node_any *record)
{
	if (c->follows && !record->observation.sandbox[0])
		c->endless = true; /* the list is through: news come when there are some */
	if (c->endless)
		uv_timer_stop(&c->deadline);
	else
		set_deadline(c);
	if (c->events->on_part)
		c->events->on_part(c->data, record);
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
	if (h.kind == NODE_PART)
		take_part(*at, &record);
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
	close_fd(&fd); /* unless the call took it */
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
	if (!link->deadlines)
		link->deadlines = usual_deadlines;
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
	c->link = link;
	c->verb = verb;
	c->follows = verb == NODE_INVENTORY && ((const struct node_cursor *)record)->follow;
	c->events = events;
	c->data = data;
	bucket = &link->calls[c->id % NODE_LINK_BUCKETS];
	c->next = *bucket;
	*bucket = c;
	uv_timer_init(link->loop, &c->deadline);
	c->deadline.data = c;
	set_deadline(c);
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

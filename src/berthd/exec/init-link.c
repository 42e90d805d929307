#include "berthd/exec/init-link.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/loop.h"

#define SMALL_MAX  (16UL * 1024) /* a frame that must be whole to be read */
#define SEND_MARK  (1UL << 20)   /* bytes on their way: then it is full */
#define LOOK_MS    5000
#define SILENCE_MS 60000 /* init says at least every few seconds that it still works */

struct init_link {
	struct reactor *reactor;
	const struct init_link_events *events;
	void *data;
	uv_pipe_t pipe;
	uv_timer_t timer;
	bool piped, reading, closed, expecting, full;
	int pending;       /* handles and calls that will still come back to us */
	uint64_t moved_ms; /* when a byte last went either way */
	size_t sends;      /* frames that wait in the socket's queue */

	uint8_t head[FRAME_HEAD];
	size_t head_have;
	uint32_t left; /* of the frame's payload */
	struct buf small;
};

static void unref(struct init_link *l)
{
	if (--l->pending > 0)
		return;
	buf_done(&l->small);
	free(l);
}

static void on_closed(uv_handle_t *handle)
{
	unref(handle->data);
}

struct init_link *init_link_new(struct reactor *r, const struct init_link_events *events,
				void *data)
{
	struct init_link *l = xcalloc(1, sizeof(*l));

	l->reactor = r;
	l->events = events;
	l->data = data;
	l->pending = 1; /* the owner's */
	l->small = buf_make(SMALL_MAX + 1);
	return l;
}

void init_link_close(struct init_link *l)
{
	if (!l || l->closed)
		return;
	l->closed = true;
	if (l->piped) {
		uv_close((uv_handle_t *)&l->pipe, on_closed);
		uv_close((uv_handle_t *)&l->timer, on_closed);
	}
	unref(l);
}

static void fail(struct init_link *l, const struct err *why)
{
	if (l->closed)
		return;
	l->events->failed(l->data, why);
	init_link_close(l);
}

static void fail_because(struct init_link *l, enum err_code code, const char *why)
{
	struct err e;

	err_set(&e, code, "%s", why);
	fail(l, &e);
}

/* ---- from init ---- */

static size_t take_head(struct init_link *l, const uint8_t *data, size_t len)
{
	size_t want = FRAME_HEAD - l->head_have;
	size_t n = len < want ? len : want;

	memcpy(l->head + l->head_have, data, n);
	l->head_have += n;
	if (l->head_have == FRAME_HEAD)
		l->left = (uint32_t)l->head[1] << 24 | (uint32_t)l->head[2] << 16 |
			  (uint32_t)l->head[3] << 8 | l->head[4];
	return n;
}

static void pause_reading(struct init_link *l)
{
	if (l->closed || !l->reading)
		return;
	l->reading = false;
	uv_read_stop((uv_stream_t *)&l->pipe);
}

static size_t take_payload(struct init_link *l, const uint8_t *data, size_t len)
{
	size_t n = len < l->left ? len : l->left;

	l->left -= (uint32_t)n;
	if (l->head[0] != FRAME_DATA)
		buf_add(&l->small, data, n);
	else if (n > 0 && l->events->bytes(l->data, data, n))
		pause_reading(l);
	return n;
}

/* A whole head is there; is the frame one that may come? */
static bool is_sound(const struct init_link *l)
{
	return l->head[0] > FRAME_NONE && l->head[0] < FRAME_TYPE_END &&
	       l->left <= (l->head[0] == FRAME_DATA ? FRAME_PAYLOAD_MAX : SMALL_MAX);
}

static void take_frame(struct init_link *l)
{
	struct frame f = { .type = (enum frame_type)l->head[0],
			   .payload = { (const uint8_t *)buf_str(&l->small), l->small.len } };

	l->head_have = 0;
	if (f.type != FRAME_DATA && f.type != FRAME_TICK)
		l->events->frame(l->data, &f);
	if (!l->closed)
		buf_clear(&l->small);
}

static void take_bytes(struct init_link *l, const uint8_t *data, size_t len)
{
	while (len > 0 && !l->closed) {
		size_t n = l->head_have < FRAME_HEAD ? take_head(l, data, len)
						     : take_payload(l, data, len);

		data += n;
		len -= n;
		if (l->closed || l->head_have < FRAME_HEAD)
			continue;
		if (!is_sound(l))
			return fail_because(l, ERR_INTERNAL,
					    "the sandbox's init sent something that is no frame");
		if (l->left == 0)
			take_frame(l);
	}
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct init_link *l = handle->data;

	(void)size;
	*buf = uv_buf_init(l->reactor->read_buffer, REACTOR_READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct init_link *l = stream->data;

	if (n == 0 || l->closed)
		return;
	l->pending++; /* it must outlive this, however it ends */
	l->moved_ms = uv_now(&l->reactor->loop);
	if (n > 0)
		take_bytes(l, (const uint8_t *)buf->base, (size_t)n);
	else
		fail_because(l, ERR_BUSY, "the sandbox ended before it gave an answer");
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): `pending` above holds it until here */
	unref(l);
}

void init_link_resume(struct init_link *l)
{
	if (l->closed || l->reading || !l->piped)
		return;
	l->moved_ms = uv_now(&l->reactor->loop);
	l->reading = uv_read_start((uv_stream_t *)&l->pipe, on_alloc, on_read) == 0;
}

void init_link_expect(struct init_link *l)
{
	l->expecting = true;
	l->moved_ms = uv_now(&l->reactor->loop);
}

static void on_look(uv_timer_t *timer)
{
	struct init_link *l = timer->data;
	bool waiting = (l->expecting && l->reading) || l->full;

	if (!l->closed && waiting && uv_now(&l->reactor->loop) - l->moved_ms > SILENCE_MS)
		fail_because(l, ERR_TIMEOUT, "the sandbox does not answer");
}

/* ---- to init ---- */

struct sending {
	uv_write_t write;
	struct init_link *l;
	char bytes[];
};

/* In bytes of our memory: what a write stands in counts, too. */
static size_t backlog(const struct init_link *l)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&l->pipe) +
	       l->sends * sizeof(struct sending);
}

static void on_sent(uv_write_t *write, int status)
{
	struct sending *s = container_of(write, struct sending, write);
	struct init_link *l = s->l;

	free(s);
	l->sends--;
	if (status < 0 || l->closed)
		return; /* a broken connection is seen by the reader; it is there until closed */
	l->moved_ms = uv_now(&l->reactor->loop);
	if (!l->full || backlog(l) >= SEND_MARK)
		return;
	l->full = false;
	if (l->events->drained)
		l->events->drained(l->data);
}

/* What the socket did not take at once, from byte `skip` of head and data on. */
static void send_rest(struct init_link *l, const uint8_t head[FRAME_HEAD], const void *data,
		      size_t len, size_t skip)
{
	size_t all = FRAME_HEAD + len, from_data = skip > FRAME_HEAD ? skip - FRAME_HEAD : 0;
	struct sending *s = xrealloc(NULL, sizeof(*s) + all - skip);
	size_t heads = skip < FRAME_HEAD ? FRAME_HEAD - skip : 0;
	uv_buf_t buf = uv_buf_init(s->bytes, (unsigned)(all - skip));

	s->l = l;
	memcpy(s->bytes, head + FRAME_HEAD - heads, heads);
	if (len > from_data)
		memcpy(s->bytes + heads, (const char *)data + from_data, len - from_data);
	if (uv_write(&s->write, (uv_stream_t *)&l->pipe, &buf, 1, on_sent) < 0)
		free(s);
	else
		l->sends++;
}

bool init_link_send(struct init_link *l, enum frame_type type, const void *data, size_t len)
{
	uint8_t head[FRAME_HEAD];
	uv_stream_t *stream = (uv_stream_t *)&l->pipe;
	uv_buf_t bufs[2] = { uv_buf_init((char *)head, FRAME_HEAD),
			     uv_buf_init((char *)data, (unsigned)len) };
	int sent = 0;

	if (l->closed || !l->piped)
		return false;
	frame_head(head, type, len);
	if (uv_stream_get_write_queue_size(stream) == 0)
		sent = uv_try_write(stream, bufs, len > 0 ? 2 : 1);
	if (sent < 0)
		sent = 0; /* full, or broken: the queue will tell */
	else if (sent > 0)
		l->moved_ms = uv_now(&l->reactor->loop);
	if ((size_t)sent < FRAME_HEAD + len)
		send_rest(l, head, data, len, (size_t)sent);
	l->full = backlog(l) >= SEND_MARK;
	return l->full;
}

/* ---- the way there ---- */

static void on_way(void *data, struct init_dial *way, const struct err *why)
{
	struct init_link *l = data;

	if (!l->closed && why)
		fail(l, why);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the search holds it until here */
	if (l->closed)
		return unref(l);
	uv_pipe_init(&l->reactor->loop, &l->pipe, 0);
	uv_timer_init(&l->reactor->loop, &l->timer);
	l->pipe.data = l->timer.data = l;
	l->piped = true;
	l->pending++; /* two handles, and the search is over */
	if (uv_pipe_open(&l->pipe, way->fd) < 0)
		return fail_because(l, ERR_INTERNAL, "the connection to the sandbox is of no use");
	(void)take_fd(way->fd);
	uv_timer_start(&l->timer, on_look, LOOK_MS, LOOK_MS);
	init_link_resume(l);
	l->events->opened(l->data);
}

void init_link_open(struct init_link *l, const struct init_dial_ask *ask)
{
	l->pending++; /* the search */
	init_dial_find(ask, on_way, l);
}

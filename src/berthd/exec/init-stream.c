#include "berthd/exec/init-stream.h"

#include <stdlib.h>
#include <string.h>

#include "lib/loop.h"

#define WHOLE_MAX (16UL * 1024) /* of a frame that must be whole to be read */

struct init_stream {
	struct reactor *reactor;
	const struct init_stream_events *events;
	void *data;
	uv_pipe_t pipe;
	bool closed, reading;
	size_t sends; /* writes that wait in the socket's queue */
	uint64_t moved_ms;

	/* the frame that is coming in */
	uint8_t head[FRAME_HEAD];
	size_t head_have;
	uint32_t left;    /* of its payload */
	struct buf whole; /* its payload, if that does not come in pieces */
};

static void on_closed(uv_handle_t *handle)
{
	struct init_stream *s = handle->data;

	buf_done(&s->whole);
	free(s);
}

void init_stream_close(struct init_stream *s)
{
	if (!s || s->closed)
		return;
	s->closed = true;
	uv_close((uv_handle_t *)&s->pipe, on_closed);
}

static void moved(struct init_stream *s)
{
	s->moved_ms = uv_now(&s->reactor->loop);
}

uint64_t init_stream_moved_ms(const struct init_stream *s)
{
	return s->moved_ms;
}

/* ---- in ---- */

static bool comes_in_pieces(const struct init_stream *s)
{
	return s->events->pieces & FRAME_BIT(s->head[0]);
}

static int check_head(const struct init_stream *s, struct err *e)
{
	if (s->head[0] <= FRAME_NONE || s->head[0] >= FRAME_TYPE_END)
		return err_set(e, ERR_INTERNAL, "the sandbox's init sent an unknown frame");
	if (s->left > (comes_in_pieces(s) ? FRAME_PAYLOAD_MAX : WHOLE_MAX))
		return err_set(e, ERR_INTERNAL, "the sandbox's init sent too long a frame");
	return 0;
}

/* The head of the next frame; returns how many bytes it took. */
static size_t take_head(struct init_stream *s, const uint8_t *data, size_t len)
{
	size_t want = FRAME_HEAD - s->head_have;
	size_t n = len < want ? len : want;

	memcpy(s->head + s->head_have, data, n);
	s->head_have += n;
	if (s->head_have < FRAME_HEAD)
		return n;
	s->left = (uint32_t)s->head[1] << 24 | (uint32_t)s->head[2] << 16 |
		  (uint32_t)s->head[3] << 8 | s->head[4];
	buf_clear(&s->whole);
	return n;
}

static size_t take_payload(struct init_stream *s, uint8_t *data, size_t len)
{
	size_t n = len < s->left ? len : s->left;

	s->left -= (uint32_t)n;
	if (!comes_in_pieces(s))
		buf_add(&s->whole, data, n);
	else if (n > 0 && s->events->piece(s->data, (enum frame_type)s->head[0], data, n))
		init_stream_pause(s);
	return n;
}

static void end_frame(struct init_stream *s)
{
	struct frame f = { .type = (enum frame_type)s->head[0],
			   .payload = { (const uint8_t *)buf_str(&s->whole), s->whole.len } };

	s->head_have = 0;
	if (!comes_in_pieces(s))
		s->events->frame(s->data, &f);
}

/*
 * In front of a piece there are always FRAME_HEAD bytes that were used: the head of its frame, or
 * what is left free at the start of the buffer.
 */
static void take_bytes(struct init_stream *s, uint8_t *data, size_t len)
{
	struct err e;

	while (len > 0 && !s->closed) {
		bool heading = s->head_have < FRAME_HEAD;
		size_t n = heading ? take_head(s, data, len) : take_payload(s, data, len);

		data += n;
		len -= n;
		if (s->head_have < FRAME_HEAD)
			continue;
		if (heading && check_head(s, &e) < 0)
			return s->events->gone(s->data, &e);
		if (s->left == 0 && !s->closed)
			end_frame(s);
	}
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct init_stream *s = handle->data;

	(void)size;
	*buf = uv_buf_init(s->reactor->read_buffer + FRAME_HEAD, REACTOR_READ_SIZE - FRAME_HEAD);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct init_stream *s = stream->data;

	if (n == 0 || s->closed)
		return;
	moved(s);
	if (n > 0)
		take_bytes(s, (uint8_t *)buf->base, (size_t)n);
	else
		s->events->gone(s->data, NULL);
}

void init_stream_pause(struct init_stream *s)
{
	if (s->reading && !s->closed)
		uv_read_stop((uv_stream_t *)&s->pipe);
	s->reading = false;
}

void init_stream_resume(struct init_stream *s)
{
	if (s->reading || s->closed)
		return;
	moved(s);
	s->reading = uv_read_start((uv_stream_t *)&s->pipe, on_alloc, on_read) == 0;
}

bool init_stream_is_paused(const struct init_stream *s)
{
	return !s->reading;
}

/* ---- out ---- */

struct sending {
	uv_write_t write;
	struct init_stream *stream;
	char bytes[];
};

size_t init_stream_backlog(const struct init_stream *s)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&s->pipe) +
	       s->sends * sizeof(struct sending);
}

static void on_sent(uv_write_t *write, int status)
{
	struct sending *w = container_of(write, struct sending, write);
	struct init_stream *s = w->stream; /* its pipe closes after this */

	free(w);
	s->sends--;
	if (s->closed)
		return;
	if (status == 0)
		moved(s);
	if (s->events->sent)
		s->events->sent(s->data, status < 0);
}

/* What the socket did not take at once, from byte `skip` of head and data on. */
static void send_rest(struct init_stream *s, const uint8_t head[FRAME_HEAD], const void *data,
		      size_t len, size_t skip)
{
	size_t all = FRAME_HEAD + len, from_data = skip > FRAME_HEAD ? skip - FRAME_HEAD : 0;
	struct sending *w = xrealloc(NULL, sizeof(*w) + all - skip);
	size_t heads = skip < FRAME_HEAD ? FRAME_HEAD - skip : 0;
	uv_buf_t buf = uv_buf_init(w->bytes, (unsigned)(all - skip));

	w->stream = s;
	memcpy(w->bytes, head + FRAME_HEAD - heads, heads);
	if (len > from_data)
		memcpy(w->bytes + heads, (const char *)data + from_data, len - from_data);
	if (uv_write(&w->write, (uv_stream_t *)&s->pipe, &buf, 1, on_sent) < 0)
		free(w); /* a broken connection is seen by the reader */
	else
		s->sends++;
}

void init_stream_send(struct init_stream *s, enum frame_type type, const void *data, size_t len)
{
	uint8_t head[FRAME_HEAD];
	uv_stream_t *stream = (uv_stream_t *)&s->pipe;
	uv_buf_t bufs[2] = { uv_buf_init((char *)head, FRAME_HEAD),
			     uv_buf_init((char *)data, (unsigned)len) };
	int sent = 0;

	if (s->closed)
		return;
	frame_head(head, type, len);
	if (uv_stream_get_write_queue_size(stream) == 0)
		sent = uv_try_write(stream, bufs, len > 0 ? 2 : 1);
	if (sent < 0)
		sent = 0; /* full, or broken: the queue will tell */
	else if (sent > 0)
		moved(s);
	if ((size_t)sent < FRAME_HEAD + len)
		send_rest(s, head, data, len, (size_t)sent);
}

/* ---- the connection ---- */

struct init_stream *init_stream_open(struct reactor *r, int fd,
				     const struct init_stream_events *events, void *data)
{
	struct init_stream *s = xcalloc(1, sizeof(*s));

	s->reactor = r;
	s->events = events;
	s->data = data;
	s->whole = buf_make(WHOLE_MAX + 1);
	uv_pipe_init(&r->loop, &s->pipe, 0);
	s->pipe.data = s;
	if (uv_pipe_open(&s->pipe, fd) < 0) {
		close_fd(&fd);
		init_stream_close(s);
		return NULL;
	}
	init_stream_resume(s);
	return s;
}

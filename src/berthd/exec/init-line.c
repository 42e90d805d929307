#include "berthd/exec/init-line.h"

#include <stdlib.h>
#include <string.h>

#include "lib/loop.h"

#define SMALL_MAX 8192

struct line {
	struct reactor *reactor;
	const struct line_events *events;
	void *data;
	uv_pipe_t pipe;
	bool closed, reading;
	size_t sends; /* frames on their way out */

	/* the frame that is coming in */
	uint8_t head[FRAME_HEAD];
	size_t head_have;
	uint32_t left;    /* of its payload */
	struct buf small; /* a payload that must be whole to be read */
};

static void on_closed(uv_handle_t *handle)
{
	struct line *l = handle->data;

	buf_done(&l->small);
	free(l);
}

void line_close(struct line *l)
{
	if (!l || l->closed)
		return;
	l->closed = true;
	uv_close((uv_handle_t *)&l->pipe, on_closed);
}

/* ---- in ---- */

static bool is_output(const struct line *l)
{
	return l->head[0] == FRAME_STDOUT || l->head[0] == FRAME_STDERR;
}

static int check_head(const struct line *l, struct err *e)
{
	if (l->head[0] <= FRAME_NONE || l->head[0] >= FRAME_TYPE_END)
		return err_set(e, ERR_INTERNAL, "the sandbox's init sent an unknown frame");
	if (l->left > FRAME_PAYLOAD_MAX || (!is_output(l) && l->left > SMALL_MAX))
		return err_set(e, ERR_INTERNAL, "the sandbox's init sent too long a frame");
	return 0;
}

/* The head of the next frame; returns how many bytes it took. */
static size_t take_head(struct line *l, const uint8_t *data, size_t len)
{
	size_t want = FRAME_HEAD - l->head_have;
	size_t n = len < want ? len : want;

	memcpy(l->head + l->head_have, data, n);
	l->head_have += n;
	if (l->head_have < FRAME_HEAD)
		return n;
	l->left = (uint32_t)l->head[1] << 24 | (uint32_t)l->head[2] << 16 |
		  (uint32_t)l->head[3] << 8 | l->head[4];
	buf_clear(&l->small);
	return n;
}

static size_t take_payload(struct line *l, uint8_t *data, size_t len)
{
	size_t n = len < l->left ? len : l->left;

	l->left -= (uint32_t)n;
	if (!is_output(l))
		buf_add(&l->small, data, n);
	else if (n > 0)
		l->events->output(l->data, l->head[0] == FRAME_STDERR, data, n);
	return n;
}

static void end_frame(struct line *l)
{
	struct frame f = { .type = (enum frame_type)l->head[0],
			   .payload = { (const uint8_t *)buf_str(&l->small), l->small.len } };

	l->head_have = 0;
	if (!is_output(l))
		l->events->frame(l->data, &f);
}

/*
 * In front of a piece of output there are always FRAME_HEAD bytes that were used:
 * its own head, or the room we leave at the start of the buffer.
 */
static void take_bytes(struct line *l, uint8_t *data, size_t len)
{
	struct err e;

	while (len > 0 && !l->closed) {
		bool heading = l->head_have < FRAME_HEAD;
		size_t n = heading ? take_head(l, data, len) : take_payload(l, data, len);

		data += n;
		len -= n;
		if (l->head_have < FRAME_HEAD)
			continue;
		if (heading && check_head(l, &e) < 0)
			return l->events->gone(l->data, &e);
		if (l->left == 0 && !l->closed)
			end_frame(l);
	}
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct line *l = handle->data;

	(void)size;
	*buf = uv_buf_init(l->reactor->read_buffer + FRAME_HEAD, REACTOR_READ_SIZE - FRAME_HEAD);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct line *l = stream->data;

	if (n > 0)
		take_bytes(l, (uint8_t *)buf->base, (size_t)n);
	else if (n < 0)
		l->events->gone(l->data, NULL);
}

void line_pause(struct line *l)
{
	if (l->reading)
		uv_read_stop((uv_stream_t *)&l->pipe);
	l->reading = false;
}

void line_resume(struct line *l)
{
	if (!l->reading && !l->closed)
		l->reading = uv_read_start((uv_stream_t *)&l->pipe, on_alloc, on_read) == 0;
}

/* ---- out ---- */

struct sending {
	uv_write_t write;
	struct line *line;
	char bytes[];
};

static void on_sent(uv_write_t *write, int status)
{
	struct sending *s = container_of(write, struct sending, write);
	struct line *l = s->line; /* there until its pipe is closed, and that is after this */

	(void)status; /* a broken connection is seen by the reader */
	free(s);
	if (--l->sends == 0 && !l->closed)
		l->events->sent(l->data);
}

void line_send(struct line *l, enum frame_type type, const void *data, size_t len)
{
	struct sending *s;
	uv_buf_t buf;

	if (l->closed)
		return;
	s = xcalloc(1, sizeof(*s) + FRAME_HEAD + len);
	s->line = l;
	frame_head((uint8_t *)s->bytes, type, len);
	if (len > 0)
		memcpy(s->bytes + FRAME_HEAD, data, len);
	buf = uv_buf_init(s->bytes, (unsigned)(FRAME_HEAD + len));
	if (uv_write(&s->write, (uv_stream_t *)&l->pipe, &buf, 1, on_sent) < 0)
		free(s);
	else
		l->sends++;
}

size_t line_backlog(const struct line *l)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&l->pipe) +
	       l->sends * sizeof(struct sending);
}

/* ---- the connection ---- */

struct line *line_open(struct reactor *r, int fd, const struct line_events *events, void *data)
{
	struct line *l = xcalloc(1, sizeof(*l));

	l->reactor = r;
	l->events = events;
	l->data = data;
	l->small = buf_make(SMALL_MAX + 1);
	uv_pipe_init(&r->loop, &l->pipe, 0);
	l->pipe.data = l;
	if (uv_pipe_open(&l->pipe, fd) < 0) {
		close_fd(&fd);
		line_close(l);
		return NULL;
	}
	line_resume(l);
	return l;
}

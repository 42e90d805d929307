#include "init/frame-conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_CHUNK (64 * 1024)

void frame_conn_open(struct frame_conn *p, int fd)
{
	*p = (struct frame_conn){
		.fd = fd,
		.in = buf_make(FRAME_HEAD + FRAME_PAYLOAD_MAX + READ_CHUNK + 1),
		.out = xcalloc(1, FRAME_HEAD + FRAME_PAYLOAD_MAX),
	};
}

void frame_conn_close(struct frame_conn *p)
{
	close_fd(&p->fd);
	buf_done(&p->in);
	free(p->out);
	*p = (struct frame_conn){ .fd = -1 };
}

bool frame_conn_busy(const struct frame_conn *p)
{
	return p->out_sent < p->out_len || p->from_left > 0;
}

int frame_conn_read(struct frame_conn *p)
{
	char chunk[READ_CHUNK];
	ssize_t n = recv(p->fd, chunk, sizeof(chunk), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	buf_add(&p->in, chunk, (size_t)n);
	return buf_overflowed(&p->in) ? -1 : 0;
}

/* All take what they can: 1 if it was everything, 0 if the peer is slow, -1 if it is gone. */
static int flush_out(struct frame_conn *p)
{
	while (p->out_sent < p->out_len) {
		ssize_t n = send(p->fd, p->out + p->out_sent, p->out_len - p->out_sent,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		p->out_sent += (size_t)n;
	}
	return 1;
}

/* Where a pipe cannot be spliced to a socket, its bytes take the long way. */
static int read_rest(struct frame_conn *p)
{
	ssize_t n = read(p->from, p->out, p->from_left);

	if (n <= 0)
		return -1;
	p->out_len = (size_t)n;
	p->out_sent = 0;
	p->from_left -= (size_t)n;
	return flush_out(p);
}

static int flush_from(struct frame_conn *p)
{
	int r = 1;

	while (r > 0 && p->from_left > 0) {
		ssize_t n = splice(p->from, NULL, p->fd, NULL, p->from_left, SPLICE_F_NONBLOCK);

		if (n > 0)
			p->from_left -= (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			r = 0;
		else if (n < 0 && (errno == EINVAL || errno == ENOSYS))
			r = read_rest(p);
		else if (n == 0 || errno != EINTR)
			r = -1;
	}
	return r;
}

int frame_conn_flush(struct frame_conn *p)
{
	int r = flush_out(p);

	if (r > 0)
		r = flush_from(p);
	return r < 0 ? -1 : 0;
}

int frame_conn_next(struct frame_conn *p, struct frame *ret, struct err *e)
{
	struct bytes wire = { (const uint8_t *)buf_str(&p->in), p->in.len };
	ssize_t n = frame_next(wire, ret, e);

	return n < 0 ? -1 : n > 0;
}

void frame_conn_took(struct frame_conn *p, const struct frame *f)
{
	buf_drop(&p->in, FRAME_HEAD + f->payload.len);
}

uint8_t *frame_conn_payload(struct frame_conn *p)
{
	assert(!frame_conn_busy(p));
	return p->out + FRAME_HEAD;
}

void frame_conn_put(struct frame_conn *p, enum frame_type type, size_t len)
{
	assert(!frame_conn_busy(p));
	frame_head(p->out, type, len);
	p->out_len = FRAME_HEAD + len;
	p->out_sent = 0;
}

void frame_conn_put_pipe(struct frame_conn *p, enum frame_type type, int fd, size_t len)
{
	frame_conn_put(p, type, len);
	p->out_len = FRAME_HEAD;
	p->from = fd;
	p->from_left = len;
}

void frame_conn_put_frame(struct frame_conn *p, const struct buf *frame)
{
	assert(!frame_conn_busy(p) && frame->len <= FRAME_HEAD + FRAME_PAYLOAD_MAX);
	memcpy(p->out, frame->data, frame->len);
	p->out_len = frame->len;
	p->out_sent = 0;
}

void frame_conn_refuse(struct frame_conn *p, const struct err *why)
{
	cleanup(buf_done) struct buf frame = buf_make(2048);

	if (frame_conn_busy(p))
		return;
	frame_add_error(&frame, why);
	frame_conn_put_frame(p, &frame);
	if (frame_conn_flush(p) < 0)
		return; /* it left first */
}

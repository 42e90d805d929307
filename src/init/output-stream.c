#include "init/output-stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define READ_MAX ((size_t)64 * 1024)

static void fd_end(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

void output_stream_open(struct output_stream *o, struct frame_conn *p, int out, int err)
{
	*o = (struct output_stream){
		.peer = p,
		.lane = { -1, -1 },
		.streams = { { .fd = out, .type = FRAME_STDOUT },
			     { .fd = err, .type = FRAME_STDERR } },
	};
	replay_buffer_init(&o->streams[0].keep);
	replay_buffer_init(&o->streams[1].keep);
}

void output_stream_close(struct output_stream *o)
{
	for (int i = 0; i < 2; i++) {
		replay_buffer_done(&o->streams[i].keep);
		fd_end(&o->streams[i].fd);
		fd_end(&o->lane[i]);
	}
}

bool output_stream_attached(const struct output_stream *o)
{
	return o->peer->fd >= 0;
}

/* Bytes in memory that were not sent. What is in a kept pipe, was. */
static size_t unsent(const struct output_stream_stream *s)
{
	uint64_t end = s->acked + s->keep.len;

	return s->sent < end ? (size_t)(end - s->sent) : 0;
}

static bool has_unsent(const struct output_stream *o)
{
	return o->staged > 0 || unsent(&o->streams[0]) > 0 || unsent(&o->streams[1]) > 0;
}

bool output_stream_wants(const struct output_stream *o, int i)
{
	const struct output_stream_stream *s = &o->streams[i];

	if (s->fd < 0 || replay_buffer_room(&s->keep) == 0 || (o->draining && s->left == 0))
		return false;
	return !output_stream_attached(o) || (!frame_conn_busy(o->peer) && !has_unsent(o));
}

/* ---- the lane ---- */

/* Exactly so many bytes are in there. */
static void lane_read(struct output_stream *o, uint8_t *to, size_t n)
{
	while (n > 0) {
		ssize_t got = read(o->lane[0], to, n);

		assert(got > 0);
		to += got;
		n -= (size_t)got;
	}
}

/* Everything to memory, nothing lost; the lane can be made again later. */
static void lane_end(struct output_stream *o)
{
	if (o->staged > 0) {
		struct replay_buffer *k = &o->staged_of->keep;

		replay_buffer_pull(k);
		lane_read(o, replay_buffer_space(k, o->staged), o->staged);
		replay_buffer_grew(k, o->staged);
		o->staged = 0;
	}
	for (int i = 0; i < 2; i++) {
		replay_buffer_unpipe(&o->streams[i].keep);
		fd_end(&o->lane[i]);
	}
}

/* For a stream that fills its reads: worth the pipes it takes. */
static void lane_try(struct output_stream *o, struct output_stream_stream *s)
{
	if (o->no_lane)
		return;
	if (o->lane[0] < 0) {
		if (pipe2(o->lane, O_CLOEXEC | O_NONBLOCK) < 0 ||
		    fcntl(o->lane[1], F_SETPIPE_SZ, FRAME_PAYLOAD_MAX) < 0)
			o->no_lane = true;
	}
	if (o->no_lane || !replay_buffer_widen(&s->keep)) {
		o->no_lane = true;
		lane_end(o);
	}
}

static bool by_lane(const struct output_stream *o, const struct output_stream_stream *s)
{
	return output_stream_attached(o) && o->lane[0] >= 0 && s->keep.pipe[0] >= 0;
}

/* What is staged is kept first, then sent, as far as there is room to keep it. */
static void lane_send(struct output_stream *o)
{
	struct output_stream_stream *s = o->staged_of;
	ssize_t n = tee(o->lane[0], s->keep.pipe[1], o->staged, SPLICE_F_NONBLOCK);

	if (n < 0 && errno == EAGAIN && s->keep.piped > 0) { /* many small pages fill it, too */
		replay_buffer_pull(&s->keep);
		n = tee(o->lane[0], s->keep.pipe[1], o->staged, SPLICE_F_NONBLOCK);
	}
	if (n <= 0) {
		o->no_lane = true;
		lane_end(o);
		return;
	}
	frame_conn_put_pipe(o->peer, s->type, o->lane[0], (size_t)n);
	s->keep.piped += (size_t)n;
	s->sent += (uint64_t)n;
	o->staged -= (size_t)n;
}

/* ---- to the peer ---- */

static void memory_send(struct output_stream *o, struct output_stream_stream *s)
{
	size_t n = unsent(s);

	if (n > FRAME_PAYLOAD_MAX)
		n = FRAME_PAYLOAD_MAX;
	memcpy(frame_conn_payload(o->peer),
	       replay_buffer_at(&s->keep, (size_t)(s->sent - s->acked)), n);
	frame_conn_put(o->peer, s->type, n);
	s->sent += n;
}

static void forget_sent(struct output_stream *o)
{
	for (int i = 0; i < 2; i++) {
		struct output_stream_stream *s = &o->streams[i];

		replay_buffer_drop(&s->keep, (size_t)(s->sent - s->acked));
		s->acked = s->sent;
	}
}

int output_stream_flush(struct output_stream *o)
{
	while (output_stream_attached(o)) {
		if (frame_conn_flush(o->peer) < 0)
			return -1;
		if (o->fleeting && !frame_conn_busy(o->peer))
			forget_sent(o);
		if (frame_conn_busy(o->peer) || !has_unsent(o))
			return 0;
		if (unsent(&o->streams[o->next]) == 0)
			o->next = !o->next;
		if (unsent(&o->streams[o->next]) > 0)
			memory_send(o, &o->streams[o->next]);
		else
			lane_send(o);
		o->next = !o->next;
	}
	return 0;
}

/* ---- from the command ---- */

static ssize_t take(struct output_stream *o, struct output_stream_stream *s, size_t most)
{
	ssize_t n;

	if (by_lane(o, s)) {
		n = splice(s->fd, NULL, o->lane[1], NULL, most, SPLICE_F_NONBLOCK);
		if (n > 0) {
			o->staged = (size_t)n;
			o->staged_of = s;
		}
		if (n >= 0 || (errno != EINVAL && errno != ENOSYS))
			return n;
		o->no_lane = true;
		lane_end(o);
	}
	if (most > READ_MAX)
		most = READ_MAX;
	replay_buffer_pull(&s->keep);
	n = read(s->fd, replay_buffer_space(&s->keep, most), most);
	if (n > 0)
		replay_buffer_grew(&s->keep, (size_t)n);
	if (n == (ssize_t)READ_MAX)
		lane_try(o, s);
	return n;
}

int output_stream_take(struct output_stream *o, int i)
{
	struct output_stream_stream *s = &o->streams[i];
	size_t most = FRAME_PAYLOAD_MAX, room = replay_buffer_room(&s->keep);
	ssize_t n;

	if (!output_stream_wants(o, i))
		return 0;
	if (room < most)
		most = room;
	if (o->draining && s->left < most)
		most = s->left;
	n = take(o, s, most);
	if (n < 0 && errno == EINTR)
		return 0;
	if (n > 0) {
		s->left -= o->draining ? (size_t)n : 0;
		return output_stream_flush(o);
	}
	s->left = 0;
	if (n == 0 || errno != EAGAIN)
		fd_end(&s->fd);
	return 0;
}

void output_stream_drain(struct output_stream *o)
{
	o->draining = true;
	for (int i = 0; i < 2; i++) {
		int waiting = 0;

		if (o->streams[i].fd >= 0 && ioctl(o->streams[i].fd, FIONREAD, &waiting) == 0)
			o->streams[i].left = (size_t)waiting;
	}
}

bool output_stream_is_empty(const struct output_stream *o)
{
	return !frame_conn_busy(o->peer) && !has_unsent(o) && o->streams[0].left == 0 &&
	       o->streams[1].left == 0;
}

void output_stream_discard(struct output_stream *o, int i)
{
	struct output_stream_stream *s = &o->streams[i];
	char chunk[16 * 1024];
	ssize_t n = read(s->fd, chunk, sizeof(chunk));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_end(&s->fd);
}

/* ---- connections ---- */

int output_stream_ack(struct output_stream *o, const struct exec_ack *a, struct err *e)
{
	for (int i = 0; i < 2; i++) {
		struct output_stream_stream *s = &o->streams[i];

		if (a->offset[i] > s->sent)
			return err_set(e, ERR_INVALID, "output was acknowledged that was not sent");
		if (a->offset[i] <= s->acked)
			continue;
		replay_buffer_drop(&s->keep, (size_t)(a->offset[i] - s->acked));
		s->acked = a->offset[i];
	}
	return 0;
}

void output_stream_detach(struct output_stream *o)
{
	uint8_t chunk[4096];

	/* What the connection has not taken of its frame is kept already. */
	for (size_t left = o->peer->from_left; left > 0;) {
		size_t n = left < sizeof(chunk) ? left : sizeof(chunk);

		lane_read(o, chunk, n);
		left -= n;
	}
	lane_end(o);
	frame_conn_close(o->peer);
}

int output_stream_attach(struct output_stream *o, int fd, const uint64_t offset[2], struct err *e)
{
	output_stream_detach(o);
	frame_conn_open(o->peer, fd);
	for (int i = 0; i < 2; i++) {
		const struct output_stream_stream *s = &o->streams[i];

		if (offset[i] < s->acked || offset[i] - s->acked > s->keep.len)
			return err_set(e, ERR_CONFLICT, "the output from there on is not kept");
	}
	for (int i = 0; i < 2; i++) {
		struct output_stream_stream *s = &o->streams[i];

		replay_buffer_drop(&s->keep, (size_t)(offset[i] - s->acked));
		s->acked = s->sent = offset[i];
	}
	return 0;
}

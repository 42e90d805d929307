#include "init/outlet.h"

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

void outlet_open(struct outlet *o, struct peer *p, int out, int err)
{
	*o = (struct outlet){
		.peer = p,
		.lane = { -1, -1 },
		.streams = { { .fd = out, .type = FRAME_STDOUT },
			     { .fd = err, .type = FRAME_STDERR } },
	};
	keep_init(&o->streams[0].keep);
	keep_init(&o->streams[1].keep);
}

void outlet_close(struct outlet *o)
{
	for (int i = 0; i < 2; i++) {
		keep_done(&o->streams[i].keep);
		fd_end(&o->streams[i].fd);
		fd_end(&o->lane[i]);
	}
}

bool outlet_attached(const struct outlet *o)
{
	return o->peer->fd >= 0;
}

/* Bytes in memory that were not sent. What is in a kept pipe, was. */
static size_t unsent(const struct outlet_stream *s)
{
	uint64_t end = s->acked + s->keep.len;

	return s->sent < end ? (size_t)(end - s->sent) : 0;
}

static bool has_unsent(const struct outlet *o)
{
	return o->staged > 0 || unsent(&o->streams[0]) > 0 || unsent(&o->streams[1]) > 0;
}

bool outlet_wants(const struct outlet *o, int i)
{
	const struct outlet_stream *s = &o->streams[i];

	if (s->fd < 0 || keep_room(&s->keep) == 0 || (o->draining && s->left == 0))
		return false;
	return !outlet_attached(o) || (!peer_busy(o->peer) && !has_unsent(o));
}

/* ---- the lane ---- */

/* Exactly so many bytes are in there. */
static void lane_read(struct outlet *o, uint8_t *to, size_t n)
{
	while (n > 0) {
		ssize_t got = read(o->lane[0], to, n);

		assert(got > 0);
		to += got;
		n -= (size_t)got;
	}
}

/* Everything to memory, nothing lost; the lane can be made again later. */
static void lane_end(struct outlet *o)
{
	if (o->staged > 0) {
		struct keep *k = &o->staged_of->keep;

		keep_pull(k);
		lane_read(o, keep_space(k, o->staged), o->staged);
		keep_grew(k, o->staged);
		o->staged = 0;
	}
	for (int i = 0; i < 2; i++) {
		keep_unpipe(&o->streams[i].keep);
		fd_end(&o->lane[i]);
	}
}

/* For a stream that fills its reads: worth the pipes it takes. */
static void lane_try(struct outlet *o, struct outlet_stream *s)
{
	if (o->no_lane)
		return;
	if (o->lane[0] < 0) {
		if (pipe2(o->lane, O_CLOEXEC | O_NONBLOCK) < 0 ||
		    fcntl(o->lane[1], F_SETPIPE_SZ, FRAME_PAYLOAD_MAX) < 0)
			o->no_lane = true;
	}
	if (o->no_lane || !keep_widen(&s->keep)) {
		o->no_lane = true;
		lane_end(o);
	}
}

static bool by_lane(const struct outlet *o, const struct outlet_stream *s)
{
	return outlet_attached(o) && o->lane[0] >= 0 && s->keep.pipe[0] >= 0;
}

/* What is staged is kept first, then sent, as far as there is room to keep it. */
static void lane_send(struct outlet *o)
{
	struct outlet_stream *s = o->staged_of;
	ssize_t n = tee(o->lane[0], s->keep.pipe[1], o->staged, SPLICE_F_NONBLOCK);

	if (n < 0 && errno == EAGAIN && s->keep.piped > 0) { /* many small pages fill it, too */
		keep_pull(&s->keep);
		n = tee(o->lane[0], s->keep.pipe[1], o->staged, SPLICE_F_NONBLOCK);
	}
	if (n <= 0) {
		o->no_lane = true;
		lane_end(o);
		return;
	}
	peer_put_pipe(o->peer, s->type, o->lane[0], (size_t)n);
	s->keep.piped += (size_t)n;
	s->sent += (uint64_t)n;
	o->staged -= (size_t)n;
}

/* ---- to the peer ---- */

static void memory_send(struct outlet *o, struct outlet_stream *s)
{
	size_t n = unsent(s);

	if (n > FRAME_PAYLOAD_MAX)
		n = FRAME_PAYLOAD_MAX;
	memcpy(peer_payload(o->peer), keep_at(&s->keep, (size_t)(s->sent - s->acked)), n);
	peer_put(o->peer, s->type, n);
	s->sent += n;
}

static void forget_sent(struct outlet *o)
{
	for (int i = 0; i < 2; i++) {
		struct outlet_stream *s = &o->streams[i];

		keep_drop(&s->keep, (size_t)(s->sent - s->acked));
		s->acked = s->sent;
	}
}

int outlet_flush(struct outlet *o)
{
	while (outlet_attached(o)) {
		if (peer_flush(o->peer) < 0)
			return -1;
		if (o->fleeting && !peer_busy(o->peer))
			forget_sent(o);
		if (peer_busy(o->peer) || !has_unsent(o))
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

static ssize_t take(struct outlet *o, struct outlet_stream *s, size_t most)
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
	keep_pull(&s->keep);
	n = read(s->fd, keep_space(&s->keep, most), most);
	if (n > 0)
		keep_grew(&s->keep, (size_t)n);
	if (n == (ssize_t)READ_MAX)
		lane_try(o, s);
	return n;
}

int outlet_take(struct outlet *o, int i)
{
	struct outlet_stream *s = &o->streams[i];
	size_t most = FRAME_PAYLOAD_MAX, room = keep_room(&s->keep);
	ssize_t n;

	if (!outlet_wants(o, i))
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
		return outlet_flush(o);
	}
	s->left = 0;
	if (n == 0 || errno != EAGAIN)
		fd_end(&s->fd);
	return 0;
}

void outlet_drain(struct outlet *o)
{
	o->draining = true;
	for (int i = 0; i < 2; i++) {
		int waiting = 0;

		if (o->streams[i].fd >= 0 && ioctl(o->streams[i].fd, FIONREAD, &waiting) == 0)
			o->streams[i].left = (size_t)waiting;
	}
}

bool outlet_is_empty(const struct outlet *o)
{
	return !peer_busy(o->peer) && !has_unsent(o) && o->streams[0].left == 0 &&
	       o->streams[1].left == 0;
}

void outlet_discard(struct outlet *o, int i)
{
	struct outlet_stream *s = &o->streams[i];
	char chunk[16 * 1024];
	ssize_t n = read(s->fd, chunk, sizeof(chunk));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_end(&s->fd);
}

/* ---- connections ---- */

int outlet_ack(struct outlet *o, const struct exec_ack *a, struct err *e)
{
	for (int i = 0; i < 2; i++) {
		struct outlet_stream *s = &o->streams[i];

		if (a->offset[i] > s->sent)
			return err_set(e, ERR_INVALID, "output was acknowledged that was not sent");
		if (a->offset[i] <= s->acked)
			continue;
		keep_drop(&s->keep, (size_t)(a->offset[i] - s->acked));
		s->acked = a->offset[i];
	}
	return 0;
}

void outlet_detach(struct outlet *o)
{
	uint8_t chunk[4096];

	/* What the connection has not taken of its frame is kept already. */
	for (size_t left = o->peer->from_left; left > 0;) {
		size_t n = left < sizeof(chunk) ? left : sizeof(chunk);

		lane_read(o, chunk, n);
		left -= n;
	}
	lane_end(o);
	peer_close(o->peer);
}

int outlet_attach(struct outlet *o, int fd, const uint64_t offset[2], struct err *e)
{
	outlet_detach(o);
	peer_open(o->peer, fd);
	for (int i = 0; i < 2; i++) {
		const struct outlet_stream *s = &o->streams[i];

		if (offset[i] < s->acked || offset[i] - s->acked > s->keep.len)
			return err_set(e, ERR_CONFLICT, "the output from there on is not kept");
	}
	for (int i = 0; i < 2; i++) {
		struct outlet_stream *s = &o->streams[i];

		keep_drop(&s->keep, (size_t)(offset[i] - s->acked));
		s->acked = s->sent = offset[i];
	}
	return 0;
}

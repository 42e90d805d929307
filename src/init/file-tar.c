/* Whole trees, as tar archives out and in. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init/file-op.h"
#include "lib/errno-map.h"
#include "lib/pack.h"
#include "lib/unpack.h"

/* The archive on its way out, in frames as long as they come. */
struct sink {
	struct file_op *op;
	uint8_t *frame;
	size_t len; /* of the payload so far */
};

static int send_frame(struct sink *s, struct err *e)
{
	size_t len = s->len;

	if (len == 0)
		return 0;
	s->len = 0;
	frame_head(s->frame, FRAME_DATA, len);
	return op_send(s->op, s->frame, FRAME_HEAD + len, e);
}

static int sink_write(void *data, const void *bytes, size_t len, struct err *e)
{
	struct sink *s = data;
	const char *at = bytes;

	while (len > 0) {
		size_t room = FRAME_PAYLOAD_MAX - s->len, n = len < room ? len : room;

		memcpy(s->frame + FRAME_HEAD + s->len, at, n);
		s->len += n;
		at += n;
		len -= n;
		if (s->len == FRAME_PAYLOAD_MAX && send_frame(s, e) < 0)
			return -1;
	}
	return op_tick(s->op, e);
}

int files_pack(struct file_op *op, struct err *e)
{
	cleanup(free_ptr) uint8_t *frame = xcalloc(1, FRAME_HEAD + FRAME_PAYLOAD_MAX);
	struct sink s = { .op = op, .frame = frame };
	cleanup(free_ptr) struct pack *p = xcalloc(1, sizeof(*p));

	p->write = sink_write;
	p->data = &s;
	if (pack_path(p, op->q.path, e) < 0 || send_frame(&s, e) < 0)
		return -1;
	op->done.count = p->count;
	return 0;
}

static int unpack_all(struct file_op *op, struct unpack *u, struct err *e)
{
	const uint8_t *bytes;
	ssize_t n;

	while ((n = op_data(op, &bytes, e)) > 0)
		if (unpack_feed(u, bytes, (size_t)n, e) < 0)
			return -1;
	return n < 0 ? -1 : unpack_end(u, e);
}

int files_unpack(struct file_op *op, struct err *e)
{
	cleanup(close_fd) int dir = -1;
	cleanup(free_ptr) struct unpack *u = xcalloc(1, sizeof(*u));
	bool made;
	int n;

	if (guest_mkdirs(op->q.path, 0755, &made) < 0)
		return err_file(e, errno == EEXIST ? ENOTDIR : errno, "unpack to %.150s",
				op->q.path);
	dir = guest_open(AT_FDCWD, op->q.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_file(e, errno, "unpack to %.150s", op->q.path);
	unpack_init(u, dir, 07777);
	n = unpack_all(op, u, e);
	op->done.count = u->count;
	unpack_done(u);
	return n;
}

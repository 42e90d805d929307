/* The contents of a file, in frames as long as they come. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "init/file-op.h"
#include "lib/errno-map.h"

/* Only a regular file is opened at all; what it was swapped for meanwhile is looked at again. */
static int open_regular(const char *path, int *ret, struct stat *st, struct err *e)
{
	int fd;

	if (stat(path, st) < 0)
		return err_file(e, errno, "read %.150s", path);
	fd = S_ISREG(st->st_mode) ? guest_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 && S_ISREG(st->st_mode))
		return err_file(e, errno, "read %.150s", path);
	if (fd >= 0 && fstat(fd, st) < 0)
		st->st_mode = 0;
	if (!S_ISREG(st->st_mode)) {
		close_fd(&fd);
		return err_file(e, S_ISDIR(st->st_mode) ? EISDIR : ENXIO, "read %.150s", path);
	}
	*ret = fd;
	return 0;
}

static uint64_t range_of(const struct file_request *q, uint64_t size, uint64_t *from)
{
	uint64_t left;

	*from = q->offset < size ? q->offset : size;
	if (q->flags & FILE_FROM_END)
		*from = size - *from;
	left = size - *from;
	return q->length > 0 && q->length < left ? q->length : left;
}

/* What says that it has no bytes may be one of /proc's, which say so and have some. */
static int send_contents(struct file_op *op, int fd, uint64_t size, struct err *e)
{
	cleanup(free_ptr) uint8_t *frame = xcalloc(1, FRAME_HEAD + FRAME_PAYLOAD_MAX);
	uint64_t from, left = range_of(&op->q, size, &from);

	while (size == 0 || left > 0) {
		size_t most = FRAME_PAYLOAD_MAX;
		ssize_t n;

		if (size > 0 && left < most)
			most = (size_t)left;
		n = pread(fd, frame + FRAME_HEAD, most, (off_t)from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_file(e, errno, "read %.150s", op->q.path);
		if (n == 0 && size == 0)
			break;
		if (n == 0)
			return err_set(e, ERR_CONFLICT, "%.150s became shorter while it was read",
				       op->q.path);
		frame_head(frame, FRAME_DATA, (size_t)n);
		if (op_send(op, frame, FRAME_HEAD + (size_t)n, e) < 0)
			return -1;
		from += (uint64_t)n;
		left -= size > 0 ? (uint64_t)n : 0;
		op->done.count += (uint64_t)n;
	}
	return 0;
}

int files_read(struct file_op *op, struct err *e)
{
	cleanup(close_fd) int fd = -1;
	cleanup(buf_done) struct buf record = buf_make(16384);
	struct file_entry x = { .type = FILE_TYPE_FILE };
	struct stat st;

	if (open_regular(op->q.path, &fd, &st, e) < 0)
		return -1;
	/* Of the file that is open, not of the name, which may lead elsewhere now. */
	entry_of_stat(&x, &st, op->q.path);
	file_entry_encode(&record, &x);
	if (op_put(op, FRAME_ENTRY, &record, e) < 0)
		return -1;
	return send_contents(op, fd, (uint64_t)st.st_size, e);
}

#include "berthd/runtime/file-writer.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/file.h"

void file_writer_open(struct file_writer *w, uv_loop_t *loop, int fd, file_written_fn *on_written)
{
	/* What was read ahead still comes after a pause, so twice of what is full has its place. */
	*w = (struct file_writer){ .loop = loop,
				   .fd = fd,
				   .on_written = on_written,
				   .filling = buf_make(2 * FILE_WRITER_FULL),
				   .writing = buf_make(2 * FILE_WRITER_FULL) };
}

void file_writer_close(struct file_writer *w)
{
	buf_done(&w->filling);
	buf_done(&w->writing);
}

static void on_thread(uv_work_t *work)
{
	struct file_writer *w = container_of(work, struct file_writer, work);

	w->result = write_all(w->fd, w->writing.data, w->writing.len) < 0 ? errno : 0;
}

static void on_done(uv_work_t *work, int status);

static void begin(struct file_writer *w)
{
	struct buf empty = w->writing;

	buf_clear(&empty);
	w->writing = w->filling;
	w->filling = empty;
	w->busy = true;
	if (uv_queue_work(w->loop, &w->work, on_thread, on_done) < 0)
		abort(); /* it fails for want of a function only */
}

static void on_done(uv_work_t *work, int status)
{
	struct file_writer *w = container_of(work, struct file_writer, work);

	(void)status; /* no write is ever cancelled */
	w->busy = false;
	w->error = w->result;
	if (buf_overflowed(&w->filling))
		w->error = ENOBUFS;
	if (w->error == 0 && w->filling.len > 0)
		begin(w);
	w->on_written(w, w->error);
}

bool file_writer_add(struct file_writer *w, const void *data, size_t len)
{
	if (w->error != 0)
		return true;
	buf_add(&w->filling, data, len);
	if (!w->busy)
		begin(w);
	return w->filling.len >= FILE_WRITER_FULL;
}

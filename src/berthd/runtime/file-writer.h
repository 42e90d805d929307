/*
 * Appends to a file from a thread of libuv's pool: a disk that makes its writers wait does not
 * stop a loop and every connection it serves.
 */
#pragma once

#include <uv.h>

#include "lib/buf.h"

#define FILE_WRITER_FULL (1024 * 1024) /* bytes that may wait for a write before them */

struct file_writer;
/* A write has ended; `error` is an errno, or 0. What was added meanwhile is under way already. */
typedef void file_written_fn(struct file_writer *w, int error);

/* All but `busy` is its own. While that is true neither it nor the file may go away. */
struct file_writer {
	uv_loop_t *loop;
	file_written_fn *on_written;
	uv_work_t work;
	struct buf filling, writing;
	int fd;
	int result; /* of the thread: the loop reads it when the write is over */
	int error;
	bool busy;
};

void file_writer_open(struct file_writer *w, uv_loop_t *loop, int fd, file_written_fn *on_written);
void file_writer_close(struct file_writer *w); /* leaves the file open */
/* True: add no more before on_written() was called. What comes after an error is dropped. */
bool file_writer_add(struct file_writer *w, const void *data, size_t len);

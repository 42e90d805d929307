/*
 * One operation on files, in the hands of its verb: the request, and a way to
 * speak to the peer that waits, since no process waits for this one.
 *
 * Functions return -1 with the error set, also when the peer is gone: then
 * the peer does not read.
 */
#pragma once

#include <sys/stat.h>

#include "init/frame-conn.h"
#include "proto/files.h"

struct file_op {
	struct frame_conn *peer;
	struct file_request q;
	struct buf batch;  /* frames not yet sent */
	uint64_t heard_ms; /* when the peer last got something */
	struct file_done done;

	/* Contents on their way in: passed on in whatever pieces, never put together. */
	uint8_t *chunk;
	size_t chunk_at, chunk_len;
	uint8_t head[FRAME_HEAD];
	size_t head_have;
	size_t data_left; /* of the DATA frame it is in */
};

/* Frames are sent when there are enough of them, at a tick, or at the end. */
must_check int op_put(struct file_op *op, enum frame_type type, const struct buf *record,
		      struct err *e);
must_check int op_flush(struct file_op *op, struct err *e);

/* These bytes as they are, after what was put before. */
must_check int op_send(struct file_op *op, const void *data, size_t len, struct err *e);

/* Tell a peer that has heard nothing for long that the work goes on. Call it often. */
must_check int op_tick(struct file_op *op, struct err *e);

/* The next bytes of the contents the peer sends; 0 once DATA_END came. */
must_check ssize_t op_data(struct file_op *op, const uint8_t **ret, struct err *e);

/* Put the ENTRY of a name as it is now, never following it. */
must_check int op_put_entry(struct file_op *op, int dir, const char *name, const char *path,
			    struct err *e);
void entry_of_stat(struct file_entry *x, const struct stat *st, const char *path);
void op_put_done(struct file_op *op);

/* ---- paths ---- */

/* Open without ever waiting: for a FIFO's other end, a device, a lease. -1 with errno. */
must_check int guest_open(int dir, const char *path, int flags);

/*
 * The directory a path's last part is in, open, and that part. Trailing slashes
 * do not count; a path that ends in "." or ".." or is "/" has no last part: EINVAL.
 * -1 with errno.
 */
must_check int guest_parent(const char *path, int *dir, char name[256]);
must_check int guest_mkdirs(const char *path, mode_t mode, bool *made);

/* ---- the verbs ---- */

int files_stat(struct file_op *op, struct err *e);
int files_list(struct file_op *op, struct err *e);
int files_read(struct file_op *op, struct err *e);
int files_write(struct file_op *op, struct err *e);
int files_mkdir(struct file_op *op, struct err *e);
int files_move(struct file_op *op, struct err *e);
int files_remove(struct file_op *op, struct err *e);
int files_watch(struct file_op *op, struct err *e);
int files_pack(struct file_op *op, struct err *e);
int files_unpack(struct file_op *op, struct err *e);

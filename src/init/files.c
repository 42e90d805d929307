#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/file-op.h"
#include "lib/errno-map.h"

#define LINGER_MS 5000 /* for the peer to take our last word */

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

int files_stat(struct file_op *op, struct err *e)
{
	return op_put_entry(op, AT_FDCWD, op->q.path, op->q.path, e);
}

int files_mkdir(struct file_op *op, struct err *e)
{
	mode_t mode = op->q.flags & FILE_HAS_MODE ? op->q.mode : 0755;
	bool made = true;
	int n;

	if (op->q.flags & FILE_PARENTS)
		n = guest_mkdirs(op->q.path, mode, &made);
	else
		n = mkdir(op->q.path, mode);
	/* The umask was not asked for here. */
	if (n == 0 && made)
		n = fchmodat(AT_FDCWD, op->q.path, mode, 0);
	if (n < 0)
		return err_file(e, errno, "make directory %.150s", op->q.path);
	op->done.count = made;
	return op_put_entry(op, AT_FDCWD, op->q.path, op->q.path, e);
}

/* Where the kernel cannot rename without replacing, we look first. */
static int rename_new(const char *from, const char *to)
{
	struct stat st;
	long n = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);

	if (n == 0 || (errno != ENOSYS && errno != EINVAL))
		return (int)n;
	if (lstat(to, &st) == 0) {
		errno = EEXIST;
		return -1;
	}
	return errno == ENOENT ? rename(from, to) : -1;
}

int files_move(struct file_op *op, struct err *e)
{
	int n = op->q.flags & FILE_OVERWRITE ? rename(op->q.path, op->q.to)
					     : rename_new(op->q.path, op->q.to);

	if (n < 0)
		return err_file(e, errno, "move %.100s to %.100s", op->q.path, op->q.to);
	return op_put_entry(op, AT_FDCWD, op->q.to, op->q.to, e);
}

static int (*const verbs[FILE_VERB_END])(struct file_op *, struct err *) = {
	[FILE_STAT] = files_stat,
	[FILE_LIST] = files_list,
	[FILE_READ] = files_read,
	[FILE_WRITE] = files_write,
	[FILE_MKDIR] = files_mkdir,
	[FILE_MOVE] = files_move,
	[FILE_REMOVE] = files_remove,
	[FILE_WATCH] = files_watch,
	[FILE_PACK] = files_pack,
	[FILE_UNPACK] = files_unpack,
};

static int run(struct file_op *op, const struct frame *request, struct err *e)
{
	if (file_request_decode(request->payload, &op->q, e) < 0)
		return -1;
	frame_conn_took(op->peer, request);
	if (!verbs[op->q.verb])
		return err_set(e, ERR_UNSUPPORTED, "this init cannot do that to files");
	return verbs[op->q.verb](op, e);
}

/* What the peer still sends is read: a close with bytes unread could take our last word away. */
static void linger(struct frame_conn *p)
{
	char chunk[16384];

	(void)shutdown(p->fd, SHUT_WR);
	for (;;) {
		struct pollfd fd = { p->fd, POLLIN, 0 };

		if (poll(&fd, 1, LINGER_MS) <= 0 || recv(p->fd, chunk, sizeof(chunk), 0) <= 0)
			return;
	}
}

void files_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	struct file_op op = { .peer = p, .batch = buf_make(FRAME_PAYLOAD_MAX * 2) };
	cleanup(buf_done) struct buf record = buf_make(4096);
	struct err e;

	(void)broker;
	if (run(&op, request, &e) < 0) {
		file_failed_encode(&record, &e);
		frame_add(&op.batch, FRAME_FAILED, record.data, record.len);
	} else {
		op_put_done(&op);
	}
	if (op_flush(&op, &e) == 0)
		linger(p);
	buf_done(&op.batch);
	free(op.chunk);
}

#include "init/file-op.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/errno-map.h"

#define BATCH_BYTES (64 * 1024)
#define TICK_MS     5000
#define CHUNK_BYTES (256UL * 1024)

/* The kernel's, which musl's headers do not have. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_NO_MAGICLINKS 0x02

struct open_how {
	uint64_t flags, mode, resolve;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int peer_gone(struct err *e)
{
	return err_set(e, ERR_BUSY, "the peer waits for the answer no more");
}

static int send_all(struct file_op *op, const char *data, size_t len, struct err *e)
{
	while (len > 0) {
		ssize_t n = send(op->peer->fd, data, len, MSG_NOSIGNAL);
		struct pollfd fd = { op->peer->fd, POLLOUT, 0 };

		if (n < 0 && errno == EAGAIN) {
			(void)poll(&fd, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return peer_gone(e);
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	op->heard_ms = now_ms();
	return 0;
}

int op_flush(struct file_op *op, struct err *e)
{
	int n = send_all(op, op->batch.data, op->batch.len, e);

	buf_clear(&op->batch);
	return n;
}

int op_put(struct file_op *op, enum frame_type type, const struct buf *record, struct err *e)
{
	frame_add(&op->batch, type, record->data, record->len);
	return op->batch.len >= BATCH_BYTES ? op_flush(op, e) : 0;
}

int op_send(struct file_op *op, const void *data, size_t len, struct err *e)
{
	if (op_flush(op, e) < 0)
		return -1;
	return send_all(op, data, len, e);
}

int op_tick(struct file_op *op, struct err *e)
{
	uint64_t now = now_ms();

	if (op->heard_ms == 0)
		op->heard_ms = now;
	if (now - op->heard_ms < TICK_MS)
		return 0;
	frame_add(&op->batch, FRAME_TICK, NULL, 0);
	return op_flush(op, e);
}

/* What came with the request comes first. */
static int refill(struct file_op *op, struct err *e)
{
	struct frame_conn *p = op->peer;
	struct pollfd fd = { p->fd, POLLIN, 0 };
	ssize_t n = 0;

	if (!op->chunk)
		op->chunk = xcalloc(1, CHUNK_BYTES);
	op->chunk_at = op->chunk_len = 0;
	if (p->in.len > 0) {
		op->chunk_len = p->in.len < CHUNK_BYTES ? p->in.len : CHUNK_BYTES;
		memcpy(op->chunk, p->in.data, op->chunk_len);
		buf_drop(&p->in, op->chunk_len);
		return 0;
	}
	while ((n = recv(p->fd, op->chunk, CHUNK_BYTES, 0)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			break;
		(void)poll(&fd, 1, -1);
	}
	if (n <= 0)
		return peer_gone(e);
	op->chunk_len = (size_t)n;
	return 0;
}

/* The head of the next frame, byte by byte. */
static int take_head(struct file_op *op, bool *ended, struct err *e)
{
	const uint8_t *h = op->head;

	op->head[op->head_have++] = op->chunk[op->chunk_at++];
	if (op->head_have < FRAME_HEAD)
		return 0;
	op->head_have = 0;
	*ended = h[0] == FRAME_DATA_END;
	op->data_left = (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];
	if ((h[0] != FRAME_DATA && !*ended) || op->data_left > FRAME_PAYLOAD_MAX)
		return err_set(e, ERR_INVALID, "a frame of type %u is out of place", h[0]);
	return 0;
}

ssize_t op_data(struct file_op *op, const uint8_t **ret, struct err *e)
{
	bool ended = false;
	size_t n;

	while (op->data_left == 0 && !ended) {
		if (op->chunk_at == op->chunk_len && refill(op, e) < 0)
			return -1;
		if (take_head(op, &ended, e) < 0)
			return -1;
	}
	if (ended)
		return 0;
	if (op->chunk_at == op->chunk_len && refill(op, e) < 0)
		return -1;
	n = op->chunk_len - op->chunk_at;
	n = n < op->data_left ? n : op->data_left;
	*ret = op->chunk + op->chunk_at;
	op->chunk_at += n;
	op->data_left -= n;
	return (ssize_t)n;
}

static uint32_t type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return FILE_TYPE_FILE;
	case S_IFDIR:
		return FILE_TYPE_DIRECTORY;
	case S_IFLNK:
		return FILE_TYPE_SYMLINK;
	case S_IFIFO:
		return FILE_TYPE_FIFO;
	case S_IFSOCK:
		return FILE_TYPE_SOCKET;
	default:
		return FILE_TYPE_DEVICE;
	}
}

void entry_of_stat(struct file_entry *x, const struct stat *st, const char *path)
{
	*x = (struct file_entry){
		.type = type_of(st->st_mode),
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000U +
			    (uint64_t)st->st_mtim.tv_nsec,
		.inode = st->st_ino,
	};
	snprintf(x->path, sizeof(x->path), "%s", path);
}

static int fill_entry(struct file_entry *x, int dir, const char *name, const char *path)
{
	struct stat st;
	ssize_t n;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	entry_of_stat(x, &st, path);
	if (x->type != FILE_TYPE_SYMLINK)
		return 0;
	n = readlinkat(dir, name, x->target, sizeof(x->target) - 1);
	x->target[n > 0 ? n : 0] = '\0'; /* empty, if it changed meanwhile */
	return 0;
}

int op_put_entry(struct file_op *op, int dir, const char *name, const char *path, struct err *e)
{
	cleanup(buf_done) struct buf record = buf_make(16384);
	struct file_entry x;

	if (fill_entry(&x, dir, name, path) < 0)
		return err_file(e, errno, "look at %.150s", path);
	file_entry_encode(&record, &x);
	return op_put(op, FRAME_ENTRY, &record, e);
}

void op_put_done(struct file_op *op)
{
	cleanup(buf_done) struct buf record = buf_make(64);

	file_done_encode(&record, &op->done);
	frame_add(&op->batch, FRAME_DONE, record.data, record.len);
}

/* ---- paths ---- */

/* A link of /proc that is no path leads nowhere, where the kernel can be told so. */
int guest_open(int dir, const char *path, int flags)
{
	int all = flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY);
	struct open_how how = { .flags = (uint64_t)all, .resolve = RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dir, path, all);
	return (int)fd;
}

int guest_parent(const char *path, int *dir, char name[256])
{
	char parent[FILE_PATH_SIZE];
	size_t len = strlen(path), end = len, start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/';)
		start--;
	if (end == start || (end - start <= 2 && strncmp(path + start, "..", end - start) == 0)) {
		errno = EINVAL;
		return -1;
	}
	if (end - start > 255 || start >= sizeof(parent)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	snprintf(name, 256, "%.*s", (int)(end - start), path + start);
	snprintf(parent, sizeof(parent), "%.*s", (int)start, path);
	*dir = guest_open(AT_FDCWD, parent, O_PATH | O_DIRECTORY);
	return *dir < 0 ? -1 : 0;
}

int guest_mkdirs(const char *path, mode_t mode, bool *made)
{
	char part[FILE_PATH_SIZE];
	struct stat st;

	*made = false;
	for (const char *at = path; *at;) {
		at += strspn(at, "/");
		at += strcspn(at, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		*made = mkdir(part, at[strspn(at, "/")] ? 0755 : mode) == 0;
		if (!*made && errno != EEXIST)
			return -1;
	}
	if (stat(path, &st) < 0)
		return -1;
	errno = S_ISDIR(st.st_mode) ? 0 : EEXIST;
	return errno ? -1 : 0;
}

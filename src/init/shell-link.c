#include "init/shell-link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/pid1-broker.h"
#include "init/shell.h"
#include "proto/writer.h"

#define ACCEPT_MS 10000

static const char *const streams[] = { "in", "out", "err" };

/* ---- where the streams are ---- */

int shell_dir_make(char dir[SHELL_DIR_SIZE], struct err *e)
{
	static const char *const roots[] = { "/dev/shm", "/run", "/tmp" };
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return err_sys(e, errno, "get random bytes");
	for (size_t i = 0; i < array_len(roots); i++) {
		snprintf(dir, SHELL_DIR_SIZE, "%s/.berth-%016llx", roots[i], (unsigned long long)n);
		if (mkdir(dir, 0700) == 0)
			return 0;
	}
	dir[0] = '\0';
	return err_sys(e, errno, "make a directory for a shell's streams");
}

void shell_dir_remove(const char *dir)
{
	static const char *const names[] = { "in", "out", "err", "status", "state", "new" };
	int fd = dir[0] ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	for (size_t i = 0; fd >= 0 && i < array_len(names); i++)
		(void)unlinkat(fd, names[i], 0); /* most are not there */
	close_fd(&fd);
	if (dir[0])
		(void)rmdir(dir);
}

static int open_stream(const struct shell_link *l, const char *name, int flags)
{
	char path[SHELL_DIR_SIZE + 8];

	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	return open(path, flags | O_NONBLOCK);
}

static int streams_make(struct shell_link *l, struct command *c, struct err *e)
{
	char path[SHELL_DIR_SIZE + 8];

	if (shell_dir_make(l->dir, e) < 0)
		return -1;
	for (size_t i = 0; i < array_len(streams); i++) {
		snprintf(path, sizeof(path), "%s/%s", l->dir, streams[i]);
		if (mkfifo(path, 0600) < 0)
			return err_sys(e, errno, "make a pipe for a shell's command");
	}
	/* For both directions: as long as it runs, no process that closes it ends the stream. */
	c->out = open_stream(l, "out", O_RDWR | O_CLOEXEC);
	c->err = open_stream(l, "err", O_RDWR | O_CLOEXEC);
	if (c->out < 0 || c->err < 0)
		return err_sys(e, errno, "open a pipe of a shell's command");
	return 0;
}

int shell_link_input(struct shell_link *l)
{
	/* Until the shell opens its end there is no reader to write to. */
	int fd = l->input ? open_stream(l, "in", O_WRONLY | O_CLOEXEC) : -1;

	if (fd >= 0)
		l->input = false;
	return fd;
}

void shell_link_ended(struct shell_link *l, const struct command *c)
{
	cleanup(close_fd) int out = open_stream(l, "out", O_RDONLY | O_CLOEXEC);
	cleanup(close_fd) int err = open_stream(l, "err", O_RDONLY | O_CLOEXEC);

	if (out >= 0 && c->out >= 0)
		(void)dup3(out, c->out, O_CLOEXEC);
	if (err >= 0 && c->err >= 0)
		(void)dup3(err, c->err, O_CLOEXEC);
	shell_dir_remove(l->dir);
	l->dir[0] = '\0';
	l->input = false;
}

/* ---- words ---- */

static int receive(struct shell_link *l, int wait_ms, struct frame *ret, struct err *e)
{
	struct pollfd fd = { l->peer.fd, POLLIN, 0 };
	int n;

	while ((n = frame_conn_next(&l->peer, ret, e)) == 0) {
		int ready = poll(&fd, 1, wait_ms);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return 0;
		if (frame_conn_read(&l->peer) < 0)
			return err_set(e, ERR_CONFLICT, "the shell is gone");
	}
	return n;
}

static int ask(struct shell_link *l, const struct exec_request *q, struct command *c,
	       struct err *e)
{
	cleanup(buf_done) struct buf frame = buf_make(FRAME_HEAD + FRAME_PAYLOAD_MAX);
	cleanup(buf_done) struct buf record = buf_make(FRAME_PAYLOAD_MAX);
	struct frame f;
	uint32_t pid;
	int n;

	writer_str(&record, l->dir);
	exec_request_encode(&record, q);
	if (buf_overflowed(&record))
		return err_set(e, ERR_TOO_LARGE, "the command is too long for a shell");
	frame_add(&frame, FRAME_EXEC, record.data, record.len);
	frame_conn_put_frame(&l->peer, &frame);
	while (frame_conn_flush(&l->peer) == 0 && frame_conn_busy(&l->peer)) {
		struct pollfd fd = { l->peer.fd, POLLOUT, 0 };

		if (poll(&fd, 1, ACCEPT_MS) == 0)
			return err_set(e, ERR_BUSY, "the shell does not answer");
	}
	n = receive(l, ACCEPT_MS, &f, e);
	if (n == 0)
		return err_set(e, ERR_BUSY, "the shell does not answer");
	if (n < 0)
		return -1;
	if (f.type == FRAME_ERROR) {
		frame_error(&f, e);
		return -1;
	}
	if (f.type != FRAME_STARTED || frame_u32(&f, &pid, e) < 0)
		return err_set(e, ERR_INTERNAL, "the shell's process said something strange");
	c->pid = (pid_t)pid;
	frame_conn_took(&l->peer, &f);
	return 0;
}

static int find_shell(struct shell_link *l, const char *name, struct broker *broker, struct err *e)
{
	struct broker_packet p = { .word = BROKER_GIVE, .attach = { .offset = { SHELL_RUN } } };
	int pair[2];
	enum broker_word answer;

	snprintf(p.attach.id, sizeof(p.attach.id), ".%s", name);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_sys(e, errno, "make a socket");
	frame_conn_open(&l->peer, pair[0]);
	answer = broker_ask_on(broker, &p, pair[1]);
	close_fd(&pair[1]);
	if (answer == BROKER_YES)
		return 0;
	if (answer == BROKER_NO || answer == BROKER_UNSEEN)
		return err_set(e, ERR_NOT_FOUND, "there is no shell %s", name);
	return err_set(e, ERR_BUSY, "the shell %s takes no more commands now", name);
}

int shell_link_open(struct shell_link *l, const struct exec_request *q, struct broker *broker,
		    struct command *ret, struct err *e)
{
	struct command c = { .in = -1, .out = -1, .err = -1 };

	l->input = q->flags & EXEC_STDIN;
	if (find_shell(l, q->shell, broker, e) == 0 && streams_make(l, &c, e) == 0 &&
	    ask(l, q, &c, e) == 0) {
		*ret = c;
		return 0;
	}
	close_fd(&c.out);
	close_fd(&c.err);
	shell_link_close(l);
	return -1;
}

void shell_link_close(struct shell_link *l)
{
	frame_conn_close(&l->peer);
	shell_dir_remove(l->dir);
	l->dir[0] = '\0';
}

void shell_link_signal(struct shell_link *l, uint32_t signum)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	frame_add_u32(&frame, FRAME_SIGNAL, signum);
	/* A few bytes into a socket that holds nothing else of ours. */
	(void)send(l->peer.fd, frame.data, frame.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int shell_link_end(struct shell_link *l, int wait_ms, struct exec_exit *ret)
{
	struct frame f;
	struct err e;
	int n = receive(l, wait_ms, &f, &e);

	if (n <= 0)
		return n;
	if (f.type != FRAME_EXITED || exec_exit_decode(f.payload, ret, &e) < 0)
		return -1;
	frame_conn_took(&l->peer, &f);
	return 1;
}

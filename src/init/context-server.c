#include "init/context-server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init/handover.h"

#define FEED_MAX     (8UL << 20) /* a run's code and environment, as one line */
#define GRACE_US     2000000     /* from the interrupt to the kill */
#define LINGER_US    5000000     /* for a peer to take the last word of a context that is gone */
#define KILL_WAIT_NS 10000000    /* between two kills, if no child ended sooner */
#define POLL_MAX_MS  3600000

enum slot {
	SLOT_SIGNALS,
	SLOT_BROKER,
	SLOT_PEER,
	SLOT_FEED,
	SLOT_DONE,
	SLOT_STREAMS,
	SLOT_COUNT = SLOT_STREAMS + CONTEXT_SERVER_STREAMS
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void fd_end(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

/* --- the interpreter --- */

static bool reap_one(struct context_server *h)
{
	struct rusage use;
	int status;
	pid_t pid = wait4(-1, &status, WNOHANG, &use);

	h->childless = pid < 0 && errno == ECHILD;
	if (pid <= 0)
		return false;
	if (pid != h->interpreter.cmd.pid)
		return true;
	h->interpreter.cmd.pid = 0;
	h->ended = true;
	h->exit = (struct exec_exit){ .kind = h->stopped_as };
	if (WIFSIGNALED(status))
		h->exit.signum = (uint32_t)WTERMSIG(status);
	else if (h->stopped_as == EXEC_NONE)
		h->exit.code = (uint32_t)WEXITSTATUS(status);
	if (h->stopped_as == EXEC_NONE)
		h->exit.kind = WIFSIGNALED(status) ? EXEC_SIGNALLED : EXEC_EXITED;
	return true;
}

/* Ends everything the context started, and returns when that has been seen. */
static void kill_all(struct context_server *h)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		size_t seen = tree_kill(&h->tree);

		while (reap_one(h))
			;
		if (seen == 0 && h->childless)
			return;
		sigtimedwait(&child, NULL, &(struct timespec){ .tv_nsec = KILL_WAIT_NS });
	}
}

/* As Ctrl-C at a terminal would: the interpreter and what it runs in the foreground. */
static void interrupt(struct context_server *h, enum exec_kind why)
{
	h->stopped_as = why;
	h->deadline_us = now_us() + GRACE_US;
	if (h->interpreter.cmd.pid > 0)
		(void)kill(-h->interpreter.cmd.pid, SIGINT);
}

/* --- the run --- */

static void begin_run(struct context_server *h, int conn, uint64_t timeout_ms)
{
	cleanup(buf_done) struct buf frame = buf_make(256), record = buf_make(64);

	frame_conn_open(&h->peer, conn);
	h->phase = CONTEXT_SERVER_RUNNING;
	h->run.number++;
	h->run.fresh = h->run.number == 1;
	h->run.done = false;
	h->fed = h->told = false;
	h->stopped_as = EXEC_NONE;
	h->started_us = now_us();
	h->deadline_us = 0;
	if (timeout_ms > 0 && timeout_ms < UINT64_MAX / 2000)
		h->deadline_us = h->started_us + timeout_ms * 1000;
	frame_add_u32(&frame, FRAME_STARTED, (uint32_t)h->interpreter.cmd.pid);
	context_run_encode(&record, &h->run);
	frame_add(&frame, FRAME_RUN, record.data, record.len);
	frame_conn_put_frame(&h->peer, &frame);
}

static void end_run(struct context_server *h)
{
	frame_conn_close(&h->peer);
	buf_clear(&h->feed);
	h->phase = CONTEXT_SERVER_IDLE;
	h->deadline_us = 0;
}

/* All the run wrote is in the pipes now. What comes later is not its own. */
static void begin_drain(struct context_server *h)
{
	for (size_t i = 0; i < CONTEXT_SERVER_STREAMS; i++) {
		int waiting = 0;

		if (h->streams[i].fd >= 0 && ioctl(h->streams[i].fd, FIONREAD, &waiting) == 0)
			h->streams[i].left = (size_t)waiting;
	}
	h->phase = CONTEXT_SERVER_DRAINING;
	h->deadline_us = h->ended ? now_us() + LINGER_US : 0;
	h->exit.wall_us = now_us() - h->started_us;
}

/* The interpreter says that this run is over. What it says of others is old, or made up. */
static void on_done(struct context_server *h)
{
	uint8_t wire[4];

	while (read(h->interpreter.done, wire, sizeof(wire)) == (ssize_t)sizeof(wire)) {
		struct reader r = reader_make(wire, sizeof(wire));

		if (h->phase != CONTEXT_SERVER_RUNNING || !h->told ||
		    reader_u32(&r) != h->run.number)
			continue;
		h->run.done = true;
		h->exit = (struct exec_exit){ .kind = h->stopped_as ? h->stopped_as : EXEC_EXITED };
		begin_drain(h);
	}
}

/* The peer is gone: the run is interrupted, and what it still says is dropped. */
static void peer_left(struct context_server *h)
{
	frame_conn_close(&h->peer);
	if (h->phase == CONTEXT_SERVER_RUNNING && !h->fed && !h->ended) { /* there was no run yet */
		h->run.number--;
		end_run(h);
	} else if (h->phase == CONTEXT_SERVER_RUNNING && h->stopped_as == EXEC_NONE) {
		interrupt(h, EXEC_KILLED);
	}
}

static void say_end(struct context_server *h)
{
	cleanup(buf_done) struct buf frames = buf_make(1024), record = buf_make(256);

	context_run_encode(&record, &h->run);
	frame_add(&frames, FRAME_RUN, record.data, record.len);
	buf_clear(&record);
	exec_exit_encode(&record, &h->exit);
	frame_add(&frames, FRAME_EXITED, record.data, record.len);
	frame_conn_put_frame(&h->peer, &frames);
	h->phase = CONTEXT_SERVER_SAID;
}

/* --- what the peer says --- */

static void feed_write(struct context_server *h)
{
	while (h->feed.len > 0 && h->interpreter.requests >= 0) {
		ssize_t n = write(h->interpreter.requests, h->feed.data, h->feed.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			fd_end(&h->interpreter.requests); /* it has closed its end */
		else
			buf_drop(&h->feed, (size_t)n);
	}
}

static int take_frame(struct context_server *h, const struct frame *f, struct err *e)
{
	uint32_t signum;

	switch (f->type) {
	case FRAME_STDIN:
		h->fed = true;
		/* Its one line is whole: from now on it may say that it is done. */
		h->told = memchr(f->payload.data, '\n', f->payload.len) != NULL;
		buf_add(&h->feed, f->payload.data, f->payload.len);
		if (buf_overflowed(&h->feed))
			return err_set(e, ERR_TOO_LARGE, "more code than a run can have");
		feed_write(h);
		return 0;
	case FRAME_STDIN_END:
		return 0;
	case FRAME_SIGNAL:
		if (frame_u32(f, &signum, e) < 0)
			return -1;
		if (h->phase == CONTEXT_SERVER_RUNNING && h->stopped_as == EXEC_NONE)
			interrupt(h, EXEC_KILLED);
		return 0;
	default:
		return err_set(e, ERR_INVALID, "a frame of type %u is out of place", f->type);
	}
}

static void listen_to_peer(struct context_server *h)
{
	struct frame f;
	struct err e;
	int n = 0;

	while (h->peer.fd >= 0 && (n = frame_conn_next(&h->peer, &f, &e)) > 0) {
		n = take_frame(h, &f, &e);
		if (n < 0)
			break;
		frame_conn_took(&h->peer, &f);
	}
	if (n < 0) {
		frame_conn_refuse(&h->peer, &e);
		peer_left(h);
	}
}

static void on_peer(struct context_server *h, short events)
{
	if (events & (POLLHUP | POLLERR | POLLNVAL)) {
		peer_left(h);
		return;
	}
	if (events & POLLIN) {
		if (frame_conn_read(&h->peer) < 0)
			peer_left(h);
		else
			listen_to_peer(h);
	}
}

/* --- what the run says --- */

static void pump(struct context_server *h, struct context_server_stream *s)
{
	size_t most = FRAME_PAYLOAD_MAX;
	char nowhere[16 * 1024];
	bool heard = h->peer.fd >= 0;
	ssize_t n;

	if (h->phase == CONTEXT_SERVER_DRAINING && s->left < most)
		most = s->left;
	if (most == 0 || (heard && frame_conn_busy(&h->peer)))
		return;
	if (!heard && most > sizeof(nowhere))
		most = sizeof(nowhere);
	n = read(s->fd, heard ? (void *)frame_conn_payload(&h->peer) : nowhere, most);
	if (n < 0 && errno == EINTR)
		return;
	if (n > 0) {
		if (heard)
			frame_conn_put(&h->peer, s->type, (size_t)n);
		s->left -= h->phase == CONTEXT_SERVER_DRAINING ? (size_t)n : 0;
		return;
	}
	s->left = 0;
	if (n == 0 || errno != EAGAIN)
		s->fd = -1; /* closed with the interpreter's other ends */
}

/* --- connections --- */

static void close_late(void *data, int fd)
{
	(void)data;
	close_fd(&fd); /* it tries again, with another holder */
}

static void leave(struct context_server *h)
{
	broker_leave(h->broker, close_late, NULL);
}

/* One that has not come to say which its connection is, asks again and hears of no context. */
static void say_deleted(int from)
{
	cleanup(close_fd) int asks = from, conn = -1;
	cleanup(buf_done) struct buf frame = buf_make(512), record = buf_make(256);
	struct handover ask;

	if (handover_receive(asks, &ask, &conn) < 0)
		return;
	handover_answer(asks, HANDOVER_TAKEN);
	exec_exit_encode(&record, &(struct exec_exit){ .kind = EXEC_KILLED });
	frame_add(&frame, FRAME_EXITED, record.data, record.len);
	(void)send(conn, frame.data, frame.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void delete_context(struct context_server *h, int from)
{
	h->stopped_as = EXEC_KILLED;
	kill_all(h);
	leave(h);
	for (size_t i = 0; i < h->waiting_len; i++)
		handover_answer(h->waiting[i], HANDOVER_DELETED);
	say_deleted(from);
}

static void admit(struct context_server *h, int from)
{
	struct handover ask;
	int conn = -1;

	if (handover_receive(from, &ask, &conn) < 0) {
		close_fd(&from);
		return;
	}
	handover_answer(from, HANDOVER_TAKEN);
	close_fd(&from);
	begin_run(h, conn, ask.timeout_ms);
}

/* Take one in. Only one that ends the context is heard while a run is under way. */
static void take_in(struct context_server *h)
{
	struct broker_packet p;
	int from = -1;

	if (broker_take(h->broker, &p, &from) < 0)
		fd_end(&h->broker->fd);
	if (from < 0)
		return;
	if (p.attach.offset[0] == CONTEXT_END) {
		delete_context(h, from);
	} else if (h->phase == CONTEXT_SERVER_IDLE) {
		admit(h, from);
	} else if (h->waiting_len == CONTEXT_SERVER_WAITING_MAX) {
		handover_answer(from, HANDOVER_BUSY);
		close_fd(&from);
	} else {
		h->waiting[h->waiting_len++] = from;
	}
}

static void next_waiting(struct context_server *h)
{
	int from = h->waiting[0];

	memmove(h->waiting, h->waiting + 1, --h->waiting_len * sizeof(h->waiting[0]));
	admit(h, from);
}

/* --- the loop --- */

static bool is_drained(const struct context_server *h)
{
	for (size_t i = 0; i < CONTEXT_SERVER_STREAMS; i++)
		if (h->streams[i].left > 0)
			return false;
	return !frame_conn_busy(&h->peer);
}

static void on_deadline(struct context_server *h)
{
	if (h->phase != CONTEXT_SERVER_RUNNING) {
		frame_conn_close(&h->peer); /* it does not take the last word of what is gone */
		h->deadline_us = 0;
	} else if (h->stopped_as == EXEC_NONE) {
		interrupt(h, EXEC_TIMED_OUT);
	} else {
		kill_all(h);
		leave(h);
	}
}

/* The context is gone, with all it started; then its name is free. */
static void on_interpreter_end(struct context_server *h)
{
	kill_all(h);
	leave(h);
	if (h->phase == CONTEXT_SERVER_RUNNING)
		begin_drain(h);
}

static void step(struct context_server *h)
{
	if (h->ended && (broker_listens(h->broker) >= 0 || h->phase == CONTEXT_SERVER_RUNNING))
		on_interpreter_end(h);
	if (h->peer.fd >= 0 && frame_conn_flush(&h->peer) < 0)
		peer_left(h);
	if (h->phase == CONTEXT_SERVER_DRAINING && is_drained(h)) {
		if (h->peer.fd < 0)
			end_run(h);
		else
			say_end(h);
	}
	if (h->phase == CONTEXT_SERVER_SAID && h->peer.fd >= 0 && frame_conn_flush(&h->peer) < 0)
		peer_left(h);
	if (h->phase == CONTEXT_SERVER_SAID && !frame_conn_busy(&h->peer))
		end_run(h);
	if (h->phase == CONTEXT_SERVER_IDLE && !h->ended && h->waiting_len > 0)
		next_waiting(h);
}

static void prepare(const struct context_server *h, struct pollfd fds[SLOT_COUNT])
{
	bool busy = h->peer.fd >= 0 && frame_conn_busy(&h->peer);

	fds[SLOT_SIGNALS] = (struct pollfd){ h->sigfd, POLLIN, 0 };
	fds[SLOT_BROKER] = (struct pollfd){ broker_listens(h->broker), POLLIN, 0 };
	fds[SLOT_PEER] = (struct pollfd){ h->peer.fd, POLLIN, 0 };
	fds[SLOT_PEER].events |= busy ? POLLOUT : 0;
	fds[SLOT_FEED] = (struct pollfd){ h->feed.len > 0 ? h->interpreter.requests : -1, POLLOUT,
					  0 };
	fds[SLOT_DONE] = (struct pollfd){
		h->phase == CONTEXT_SERVER_RUNNING ? h->interpreter.done : -1, POLLIN, 0
	};
	for (size_t i = 0; i < CONTEXT_SERVER_STREAMS; i++) {
		const struct context_server_stream *s = &h->streams[i];
		bool ready = !busy && (h->phase == CONTEXT_SERVER_RUNNING || s->left > 0);

		fds[SLOT_STREAMS + i] = (struct pollfd){ ready ? s->fd : -1, POLLIN, 0 };
	}
}

static int timeout_ms(const struct context_server *h)
{
	uint64_t now = now_us(), left_ms;

	if (broker_holds(h->broker))
		return 0;
	if (h->deadline_us == 0)
		return -1;
	if (h->deadline_us <= now)
		return 0;
	left_ms = (h->deadline_us - now) / 1000 + 1;
	return left_ms > POLL_MAX_MS ? POLL_MAX_MS : (int)left_ms;
}

static void on_signals(struct context_server *h)
{
	struct signalfd_siginfo info;

	(void)!read(h->sigfd, &info, sizeof(info)); /* many may be one: we ask the kernel */
	while (reap_one(h))
		;
}

static void turn(struct context_server *h)
{
	struct pollfd fds[SLOT_COUNT];

	prepare(h, fds);
	if (poll(fds, SLOT_COUNT, timeout_ms(h)) < 0)
		return;
	if (fds[SLOT_FEED].revents)
		feed_write(h);
	if (fds[SLOT_PEER].revents && h->peer.fd >= 0)
		on_peer(h, fds[SLOT_PEER].revents);
	for (size_t i = 0; i < CONTEXT_SERVER_STREAMS; i++)
		if (fds[SLOT_STREAMS + i].revents && h->streams[i].fd >= 0)
			pump(h, &h->streams[i]);
	if (fds[SLOT_DONE].revents)
		on_done(h);
	if (fds[SLOT_SIGNALS].revents)
		on_signals(h);
	if ((fds[SLOT_BROKER].revents || broker_holds(h->broker)) &&
	    broker_listens(h->broker) >= 0)
		take_in(h);
	if (h->deadline_us != 0 && now_us() >= h->deadline_us)
		on_deadline(h);
	step(h);
}

static int watch_children(struct context_server *h, struct err *e)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &child, NULL);
	h->sigfd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	return h->sigfd < 0 ? err_sys(e, errno, "signalfd") : 0;
}

int context_server_open(struct context_server *h, const struct context_request *q,
			struct broker *broker, struct err *e)
{
	*h = (struct context_server){ .broker = broker,
				      .sigfd = -1,
				      .peer = { .fd = -1 },
				      .feed = buf_make(FEED_MAX) };
	h->interpreter = (struct interpreter){ { 0, -1, -1, -1 }, -1, -1, -1 };
	tree_open(&h->tree, broker);
	if (watch_children(h, e) < 0 || interpreter_start(&h->interpreter, q, &h->tree, e) < 0) {
		context_server_close(h);
		return -1;
	}
	/* When the sandbox is told to end, the interpreter hears it too: we end with it. */
	(void)sigaction(SIGTERM, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	h->streams[0] = (struct context_server_stream){ h->interpreter.cmd.out, FRAME_STDOUT, 0 };
	h->streams[1] = (struct context_server_stream){ h->interpreter.cmd.err, FRAME_STDERR, 0 };
	h->streams[2] = (struct context_server_stream){ h->interpreter.notes, FRAME_NOTE, 0 };
	return 0;
}

void context_server_run(struct context_server *h, int conn, uint64_t timeout)
{
	begin_run(h, conn, timeout);
	step(h);
	while (!h->ended || h->phase != CONTEXT_SERVER_IDLE)
		turn(h);
}

void context_server_close(struct context_server *h)
{
	for (size_t i = 0; i < h->waiting_len; i++)
		fd_end(&h->waiting[i]); /* its process tries again, with another holder */
	fd_end(&h->broker->fd);
	fd_end(&h->sigfd);
	interpreter_close(&h->interpreter);
	frame_conn_close(&h->peer);
	buf_done(&h->feed);
	tree_close(&h->tree);
}

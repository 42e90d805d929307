#include "init/exec.h"

#include <errno.h>
#include <fcntl.h>
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

#include "init/command.h"

#define FEED_MAX     (1UL << 20) /* standard input we hold for a command that does not read */
#define LINGER_US    1000000     /* how long a peer may take to close after EXITED */
#define KILL_WAIT_NS 10000000    /* between two blows, if no child ended sooner */
#define POLL_MAX_MS  3600000
#define SIGNUM_MAX   64

enum phase {
	PHASE_RUNNING,
	PHASE_ENDED, /* the command is gone; what it wrote is still on its way */
	PHASE_SAID,  /* EXITED is on its way, or there; the peer may close */
	PHASE_LEFT,  /* nobody listens: drain the pipes for whoever still writes */
};

struct stream {
	int fd;
	enum frame_type type;
	size_t left; /* PHASE_ENDED: what the command itself has written */
};

struct exec {
	struct peer *peer;
	struct command cmd;
	struct tree tree;
	struct stream streams[2];
	int lane[2];     /* a pipe of our own on their way out; -1: they are copied */
	struct buf feed; /* bytes for its standard input */
	bool feed_end;
	enum phase phase;
	int sigfd;
	int asked; /* the last signal a SIGNAL frame asked for */
	enum exec_kind killed_as;
	bool childless;
	uint64_t started_us, deadline_us; /* 0: none */
	struct exec_exit exit;
};

enum slot {
	SLOT_SIGNALS,
	SLOT_PEER,
	SLOT_IN,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_COUNT
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t timeval_us(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static void fd_end(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

/* --- how it ended --- */

static enum exec_kind kind_of(const struct exec *x, int status)
{
	if (WIFEXITED(status))
		return EXEC_EXITED; /* also if it did so just before our blow */
	if (x->killed_as != EXEC_NONE)
		return x->killed_as;
	return x->asked == WTERMSIG(status) ? EXEC_KILLED : EXEC_SIGNALLED;
}

static void record_end(struct exec *x, int status, const struct rusage *use)
{
	struct exec_exit *r = &x->exit;

	r->wall_us = now_us() - x->started_us;
	r->user_us = timeval_us(&use->ru_utime);
	r->system_us = timeval_us(&use->ru_stime);
	r->max_rss_kb = (uint64_t)use->ru_maxrss;
	if (WIFEXITED(status))
		r->code = (uint32_t)WEXITSTATUS(status);
	else
		r->signum = (uint32_t)WTERMSIG(status);
	r->kind = kind_of(x, status);
	x->cmd.pid = 0;
}

/* All it wrote before it ended is in the pipes now. What comes later is not its own. */
static void begin_drain(struct exec *x)
{
	for (size_t i = 0; i < array_len(x->streams); i++) {
		int waiting = 0;

		if (x->streams[i].fd >= 0 && ioctl(x->streams[i].fd, FIONREAD, &waiting) == 0)
			x->streams[i].left = (size_t)waiting;
	}
	fd_end(&x->cmd.in);
	x->deadline_us = 0;
	x->phase = PHASE_ENDED;
}

static void reap(struct exec *x)
{
	struct rusage use;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0)
		if (pid == x->cmd.pid)
			record_end(x, status, &use);
	x->childless = pid < 0 && errno == ECHILD;
	if (x->cmd.pid == 0 && x->phase == PHASE_RUNNING)
		begin_drain(x);
}

/* Ends everything it started, and returns when that has been seen. */
static void kill_all(struct exec *x, enum exec_kind kind)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	x->killed_as = kind;
	for (;;) {
		size_t seen = tree_kill(&x->tree);

		reap(x);
		if (seen == 0 && x->childless)
			return;
		sigtimedwait(&child, NULL, &(struct timespec){ .tv_nsec = KILL_WAIT_NS });
	}
}

static void peer_left(struct exec *x)
{
	if (x->phase != PHASE_SAID || peer_busy(x->peer))
		kill_all(x, EXEC_KILLED);
	peer_close(x->peer);
	x->phase = PHASE_LEFT;
	x->deadline_us = 0;
}

/* The peer speaks nonsense: end everything, say so, and hang up. */
static void give_up(struct exec *x, const struct err *why)
{
	kill_all(x, EXEC_KILLED);
	peer_refuse(x->peer, why);
	peer_close(x->peer);
	x->phase = PHASE_LEFT;
}

/* --- what the peer says --- */

static void feed_write(struct exec *x)
{
	while (x->cmd.in >= 0 && x->feed.len > 0) {
		ssize_t n = write(x->cmd.in, x->feed.data, x->feed.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			fd_end(&x->cmd.in); /* it has closed its end */
		else
			buf_drop(&x->feed, (size_t)n);
	}
	if (x->cmd.in < 0)
		buf_clear(&x->feed);
	else if (x->feed_end)
		fd_end(&x->cmd.in);
}

static int on_stdin(struct exec *x, const struct frame *f, struct err *e)
{
	if (x->feed_end)
		return err_set(e, ERR_INVALID, "standard input after its end");
	if (x->cmd.in < 0 || f->payload.len == 0)
		return 0;
	buf_add(&x->feed, f->payload.data, f->payload.len);
	feed_write(x);
	return 0;
}

static int on_stdin_end(struct exec *x, const struct frame *f, struct err *e)
{
	(void)f;
	(void)e;
	x->feed_end = true;
	feed_write(x);
	return 0;
}

static int on_signal(struct exec *x, const struct frame *f, struct err *e)
{
	uint32_t signum;

	if (frame_u32(f, &signum, e) < 0)
		return -1;
	if (signum == 0 || signum > SIGNUM_MAX)
		return err_set(e, ERR_INVALID, "there is no signal %u", signum);
	if (x->phase != PHASE_RUNNING)
		return 0;
	x->asked = (int)signum;
	if (signum == SIGKILL)
		kill_all(x, EXEC_KILLED);
	else
		tree_signal(&x->tree, (int)signum);
	return 0;
}

static int (*const handlers[FRAME_TYPE_END])(struct exec *, const struct frame *, struct err *) = {
	[FRAME_STDIN] = on_stdin,
	[FRAME_STDIN_END] = on_stdin_end,
	[FRAME_SIGNAL] = on_signal,
};

static bool can_take(const struct exec *x)
{
	return x->feed.len < FEED_MAX;
}

static void listen_to_peer(struct exec *x)
{
	struct frame f;
	struct err e;
	int n = 0;

	while (x->peer->fd >= 0 && can_take(x) && (n = peer_next(x->peer, &f, &e)) > 0) {
		if (!handlers[f.type])
			n = err_set(&e, ERR_INVALID, "a frame of type %u is out of place", f.type);
		else
			n = handlers[f.type](x, &f, &e);
		if (n < 0)
			break;
		peer_took(x->peer, &f);
	}
	if (n < 0)
		give_up(x, &e);
}

/* --- what the command says --- */

static void discard(struct stream *s)
{
	char chunk[16 * 1024];
	ssize_t n = read(s->fd, chunk, sizeof(chunk));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_end(&s->fd);
}

/*
 * One frame's worth. It is moved page by page into a pipe nobody else can read
 * from, so that its length can be promised, and from there to the socket.
 * Where that does not work it is read to behind the frame's head.
 */
static ssize_t take_output(struct exec *x, struct stream *s, size_t most)
{
	ssize_t n;

	if (x->lane[1] >= 0) {
		n = splice(s->fd, NULL, x->lane[1], NULL, most, SPLICE_F_NONBLOCK);
		if (n > 0)
			peer_put_pipe(x->peer, s->type, x->lane[0], (size_t)n);
		if (n >= 0 || (errno != EINVAL && errno != ENOSYS))
			return n;
		fd_end(&x->lane[1]);
	}
	n = read(s->fd, peer_payload(x->peer), most);
	if (n > 0)
		peer_put(x->peer, s->type, (size_t)n);
	return n;
}

static void forward(struct exec *x, struct stream *s)
{
	size_t most = FRAME_PAYLOAD_MAX;
	ssize_t n;

	if (x->phase == PHASE_ENDED && s->left < most)
		most = s->left;
	if (most == 0)
		return;
	n = take_output(x, s, most);
	if (n < 0 && errno == EINTR)
		return;
	if (n > 0) {
		s->left -= x->phase == PHASE_ENDED ? (size_t)n : 0;
		return;
	}
	s->left = 0;
	if (n == 0 || errno != EAGAIN)
		fd_end(&s->fd);
}

static void pump(struct exec *x, struct stream *s)
{
	if (x->phase >= PHASE_SAID) {
		discard(s);
		return;
	}
	if (peer_busy(x->peer))
		return;
	forward(x, s);
	if (peer_flush(x->peer) < 0)
		peer_left(x);
}

static void say_exited(struct exec *x)
{
	cleanup(buf_done) struct buf record = buf_make(256), frame = buf_make(512);

	exec_exit_encode(&record, &x->exit);
	frame_add(&frame, FRAME_EXITED, record.data, record.len);
	peer_put_frame(x->peer, &frame);
	x->phase = PHASE_SAID;
}

/* Once everything is sent, the peer sees the end and may close in its own time. */
static void step(struct exec *x)
{
	if (x->phase == PHASE_ENDED && !peer_busy(x->peer) && x->streams[0].left == 0 &&
	    x->streams[1].left == 0)
		say_exited(x);
	if (x->phase < PHASE_LEFT && peer_flush(x->peer) < 0)
		peer_left(x);
	if (x->phase == PHASE_SAID && !peer_busy(x->peer) && x->deadline_us == 0) {
		(void)shutdown(x->peer->fd, SHUT_WR);
		x->deadline_us = now_us() + LINGER_US;
	}
}

static void on_deadline(struct exec *x)
{
	if (x->phase == PHASE_RUNNING)
		kill_all(x, EXEC_TIMED_OUT);
	else if (x->phase == PHASE_SAID)
		peer_left(x);
}

/* --- the loop --- */

static short want(bool yes, short events)
{
	return yes ? events : 0;
}

static void prepare(const struct exec *x, struct pollfd fds[SLOT_COUNT])
{
	bool sending = x->phase < PHASE_LEFT && peer_busy(x->peer);

	fds[SLOT_SIGNALS] = (struct pollfd){ x->sigfd, POLLIN };
	fds[SLOT_PEER] = (struct pollfd){ x->peer->fd, want(can_take(x), POLLIN) };
	fds[SLOT_PEER].events |= want(sending, POLLOUT);
	fds[SLOT_IN] = (struct pollfd){ x->feed.len > 0 ? x->cmd.in : -1, POLLOUT };
	for (int i = 0; i < 2; i++) {
		const struct stream *s = &x->streams[i];
		bool ready = x->phase >= PHASE_SAID ||
			     (!sending && (x->phase == PHASE_RUNNING || s->left > 0));

		fds[SLOT_OUT + i] = (struct pollfd){ ready ? s->fd : -1, POLLIN };
	}
}

static int timeout_ms(const struct exec *x)
{
	uint64_t now = now_us(), left_ms;

	if (x->deadline_us == 0)
		return -1;
	if (x->deadline_us <= now)
		return 0;
	left_ms = (x->deadline_us - now) / 1000 + 1;
	return left_ms > POLL_MAX_MS ? POLL_MAX_MS : (int)left_ms;
}

static void on_peer(struct exec *x, short events)
{
	/* A closed connection shows even while we do not read from it. */
	if (events & (POLLHUP | POLLERR | POLLNVAL)) {
		peer_left(x);
		return;
	}
	if (events & POLLOUT && peer_flush(x->peer) < 0) {
		peer_left(x);
		return;
	}
	if (events & POLLIN) {
		if (peer_read(x->peer) < 0)
			peer_left(x);
		else
			listen_to_peer(x);
	}
}

static void on_signals(struct exec *x)
{
	struct signalfd_siginfo info;

	(void)!read(x->sigfd, &info, sizeof(info)); /* many may be one: reap() asks the kernel */
	reap(x);
}

static void turn(struct exec *x)
{
	struct pollfd fds[SLOT_COUNT];

	prepare(x, fds);
	if (poll(fds, SLOT_COUNT, timeout_ms(x)) < 0)
		return;
	if (fds[SLOT_IN].revents) {
		feed_write(x);
		listen_to_peer(x);
	}
	if (fds[SLOT_PEER].revents && x->peer->fd >= 0)
		on_peer(x, fds[SLOT_PEER].revents);
	for (int i = 0; i < 2; i++)
		if (fds[SLOT_OUT + i].revents && x->streams[i].fd >= 0)
			pump(x, &x->streams[i]);
	if (fds[SLOT_SIGNALS].revents)
		on_signals(x);
	if (x->deadline_us != 0 && now_us() >= x->deadline_us)
		on_deadline(x);
	step(x);
}

static bool is_over(const struct exec *x)
{
	return x->phase == PHASE_LEFT && x->streams[0].fd < 0 && x->streams[1].fd < 0;
}

static int start(struct exec *x, const struct frame *request, struct err *e)
{
	cleanup(exec_request_done) struct exec_request q = { 0 };
	sigset_t child;

	if (exec_request_decode(request->payload, &q, e) < 0)
		return -1;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &child, NULL);
	x->sigfd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (x->sigfd < 0)
		return err_sys(e, errno, "signalfd");
	tree_open(&x->tree);
	x->started_us = now_us();
	if (command_start(&q, &x->tree, &x->cmd, e) < 0)
		return -1;
	if (pipe2(x->lane, O_CLOEXEC | O_NONBLOCK) == 0)
		(void)fcntl(x->lane[1], F_SETPIPE_SZ, FRAME_PAYLOAD_MAX);
	/* When the sandbox is told to end, the command hears it too: we stay to say how it did. */
	(void)sigaction(SIGTERM, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	x->streams[0] = (struct stream){ x->cmd.out, FRAME_STDOUT };
	x->streams[1] = (struct stream){ x->cmd.err, FRAME_STDERR };
	if (q.timeout_ms > 0 && q.timeout_ms < UINT64_MAX / 2000)
		x->deadline_us = x->started_us + q.timeout_ms * 1000;
	return 0;
}

void exec_serve(struct peer *p, const struct frame *request)
{
	cleanup(buf_done) struct buf frame = buf_make(2048);
	struct exec x = { .peer = p,
			  .feed = buf_make(FEED_MAX + FRAME_PAYLOAD_MAX + 1),
			  .cmd = { .in = -1 },
			  .lane = { -1, -1 },
			  .sigfd = -1 };
	struct err e;

	if (start(&x, request, &e) < 0) {
		peer_refuse(p, &e);
		tree_close(&x.tree);
		return;
	}
	peer_took(p, request);
	frame_add_u32(&frame, FRAME_STARTED, (uint32_t)x.cmd.pid);
	peer_put_frame(p, &frame);
	if (peer_flush(p) < 0)
		peer_left(&x);
	listen_to_peer(&x); /* what came together with the request */
	while (!is_over(&x))
		turn(&x);
	tree_close(&x.tree);
	buf_done(&x.feed);
	fd_end(&x.sigfd);
	fd_end(&x.lane[0]);
	fd_end(&x.lane[1]);
}

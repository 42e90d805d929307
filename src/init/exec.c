#include "init/exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init/command.h"
#include "init/doubt.h"
#include "init/hold.h"
#include "init/output-stream.h"
#include "init/pid1-broker.h"
#include "init/pty.h"
#include "init/shell-link.h"
#include "init/stdin-feed.h"

#define LINGER_US    1000000  /* how long a peer may take to close after EXITED */
#define SHELL_END_MS 10000    /* for a shell to kill a command and say so */
#define INPUT_US     2000     /* between looks whether a shell has opened its input */
#define KILL_WAIT_NS 10000000 /* between two kills, if no child ended sooner */
#define PTY_QUIET_US 200000   /* a terminal that says nothing for so long, has said all */
#define POLL_MAX_MS  3600000
#define LEFT_LOOK_MS 1000 /* between looks at what it left, where its end is not told */

enum phase {
	PHASE_RUNNING,
	PHASE_ENDED, /* the command is gone; what it wrote is still on its way */
	PHASE_SAID,  /* EXITED is on its way, or there; the peer may close */
	PHASE_LEFT,  /* its record is safe: what the command left running is ours until it ends */
};

struct exec {
	char id[EXEC_ID_SIZE]; /* empty: it belongs to its connection */
	struct broker *broker;
	struct command cmd;
	struct tree tree;
	struct shell_link link; /* if it runs in a shell: instead of a process and a tree of ours */
	bool pty;
	bool whole;    /* what is left of it when it ends is killed */
	bool stopping; /* pid 1 ends the sandbox, and has said so to the command, too */
	struct output_stream out;
	struct stdin_feed feed;
	enum phase phase;
	int sigfd;
	uint32_t pid;
	int asked;          /* the last signal a SIGNAL frame asked for */
	uint32_t signalled; /* frames carried out since we last said so */
	enum exec_kind killed_as;
	bool childless;
	bool beside;                      /* what ended execs left runs beside it: to be said */
	uint64_t started_us, deadline_us; /* 0: none */
	struct doubt doubt;
	struct exec_exit exit;
};

enum slot {
	SLOT_SIGNALS,
	SLOT_BROKER,
	SLOT_PEER,
	SLOT_IN,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_SHELL,
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

static void record_end(struct exec *x, int status, const struct rusage *use)
{
	struct exec_exit *r = &x->exit;

	r->wall_us = (x->doubt.ended_us ? x->doubt.ended_us : now_us()) - x->started_us;
	r->user_us = timeval_us(&use->ru_utime);
	r->system_us = timeval_us(&use->ru_stime);
	r->max_rss_kb = (uint64_t)use->ru_maxrss;
	if (WIFEXITED(status))
		r->code = (uint32_t)WEXITSTATUS(status);
	else
		r->signum = (uint32_t)WTERMSIG(status);
	r->kind = exec_end_word(&(struct exec_end){ .signum = (int)r->signum,
						    .killed_as = x->killed_as,
						    .asked = x->asked,
						    .stopping = x->stopping });
	x->cmd.pid = 0;
}

static bool in_shell(const struct exec *x)
{
	return x->link.peer.fd >= 0;
}

/* What a shell's command left running is the shell's. */
static bool has_left(const struct exec *x)
{
	if (in_shell(x))
		return false;
	return tree_on_linux(&x->tree) ? !x->childless : !tree_is_empty(&x->tree);
}

static void begin_drain(struct exec *x)
{
	/* Before the end is told: what starts after it is told that this runs beside it. */
	if (!x->whole && has_left(x))
		(void)!broker_send(x->broker->fd, &(struct broker_packet){ .word = BROKER_ENDED },
				   -1);
	output_stream_drain(&x->out);
	x->deadline_us = 0;
	x->phase = PHASE_ENDED;
	if (x->pty && x->out.streams[0].fd >= 0) {
		/* The kernel may not have passed on all of it yet: read until the end shows. */
		x->out.streams[0].left = SIZE_MAX;
		x->deadline_us = now_us() + PTY_QUIET_US;
	} else {
		fd_end(&x->cmd.in);
	}
}

static void reap(struct exec *x)
{
	struct rusage use;
	int status;
	pid_t pid;

	if (x->killed_as == EXEC_NONE && doubt_look(&x->doubt, x->cmd.pid, now_us()))
		return; /* a wait for any child would take it */
	while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0)
		if (pid == x->cmd.pid)
			record_end(x, status, &use);
	x->childless = pid < 0 && errno == ECHILD;
	if (x->cmd.pid == 0 && x->phase == PHASE_RUNNING)
		begin_drain(x);
}

static void end_doubt(struct exec *x)
{
	if (doubt_end(&x->doubt))
		reap(x);
}

/* The shell's process says how it ended, or is gone with that. */
static void hear_shell(struct exec *x, int wait_ms)
{
	struct exec_exit r = { 0 };
	int n = shell_link_end(&x->link, wait_ms, &r);

	if (x->phase != PHASE_RUNNING || (n == 0 && wait_ms == 0))
		return;
	if (n <= 0)
		r = (struct exec_exit){ .kind = EXEC_LOST, .wall_us = now_us() - x->started_us };
	else if (r.kind == EXEC_KILLED && x->killed_as != EXEC_NONE)
		r.kind = x->killed_as;
	x->exit = r;
	x->cmd.pid = 0;
	shell_link_ended(&x->link, &x->cmd);
	begin_drain(x);
}

static void kill_in_shell(struct exec *x)
{
	if (x->phase != PHASE_RUNNING)
		return;
	shell_link_signal(&x->link, SIGKILL);
	hear_shell(x, SHELL_END_MS);
}

/* Ends everything it started, and returns when that has been seen: the most at once. */
static size_t kill_all(struct exec *x, enum exec_kind kind)
{
	size_t most = 0;
	sigset_t child;

	end_doubt(x);
	x->killed_as = kind;
	if (in_shell(x)) {
		kill_in_shell(x);
		return 0;
	}
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		size_t seen = tree_kill(&x->tree);

		most = seen > most ? seen : most;
		reap(x);
		if (seen == 0 && x->childless)
			return most;
		sigtimedwait(&child, NULL, &(struct timespec){ .tv_nsec = KILL_WAIT_NS });
	}
}

/* Its record is safe. We stay the parent of what it left, so that it can be found and killed. */
static void leave(struct exec *x)
{
	if (x->phase == PHASE_RUNNING)
		(void)kill_all(x, EXEC_KILLED);
	output_stream_detach(&x->out);
	x->phase = PHASE_LEFT;
	x->deadline_us = 0;
}

static void peer_left(struct exec *x)
{
	if (x->id[0]) {
		output_stream_detach(&x->out); /* another connection will come for it */
		return;
	}
	if (x->phase != PHASE_SAID || frame_conn_busy(x->out.peer))
		(void)kill_all(x, EXEC_KILLED);
	leave(x);
}

/* The peer speaks nonsense: say so, and hang up. */
static void give_up(struct exec *x, const struct err *why)
{
	if (!x->id[0])
		(void)kill_all(x, EXEC_KILLED);
	frame_conn_refuse(x->out.peer, why);
	peer_left(x);
}

/* --- what the peer says --- */

static void feed_write(struct exec *x)
{
	stdin_feed_write(&x->feed, &x->cmd.in, x->link.input);
}

static int on_stdin(struct exec *x, const struct frame *f, struct err *e)
{
	(void)e;
	stdin_feed_add(&x->feed, f->payload, x->cmd.in >= 0 || x->link.input);
	feed_write(x);
	return 0;
}

static int on_stdin_end(struct exec *x, const struct frame *f, struct err *e)
{
	(void)f;
	(void)e;
	if (x->pty) /* the viewers that type come and go */
		return 0;
	x->feed.ended = true;
	feed_write(x);
	return 0;
}

static int on_resize(struct exec *x, const struct frame *f, struct err *e)
{
	struct exec_size size;

	if (exec_size_decode(f->payload, &size, e) < 0)
		return -1;
	if (!x->pty || x->cmd.in < 0)
		return 0;
	pty_resize(x->cmd.in, &size);
	if (!tree_on_linux(&x->tree)) /* gVisor changes the size without a signal */
		tree_signal(&x->tree, SIGWINCH);
	return 0;
}

static void end_whole(struct exec *x)
{
	if (!x->whole || x->phase != PHASE_ENDED)
		return;
	x->whole = false; /* once: no process is left that could start another */
	(void)kill_all(x, EXEC_KILLED);
}

/* Its end need not be seen any longer: it is told, and what a whole one left goes with it. */
static void end_seen(struct exec *x)
{
	end_doubt(x);
	end_whole(x);
}

static int on_signal(struct exec *x, const struct frame *f, struct err *e)
{
	uint32_t signum;

	if (frame_u32(f, &signum, e) < 0)
		return -1;
	if (signum == 0 || signum > EXEC_SIGNUM_MAX)
		return err_set(e, ERR_INVALID, "there is no signal %u", signum);
	x->signalled++;
	end_seen(x);
	if (x->phase != PHASE_RUNNING)
		return 0;
	x->asked = (int)signum;
	if (signum == SIGKILL)
		(void)kill_all(x, EXEC_KILLED);
	else if (in_shell(x))
		shell_link_signal(&x->link, signum);
	else
		tree_signal(&x->tree, (int)signum);
	return 0;
}

static int on_ack(struct exec *x, const struct frame *f, struct err *e)
{
	struct exec_ack a;

	if (exec_ack_decode(f->payload, &a, e) < 0 || output_stream_ack(&x->out, &a, e) < 0)
		return -1;
	if (a.ended)
		leave(x);
	return 0;
}

/* It may come when we waited no longer. */
static int on_go(struct exec *x, const struct frame *f, struct err *e)
{
	(void)f, (void)e;
	end_seen(x);
	return 0;
}

static int (*const handlers[FRAME_TYPE_END])(struct exec *, const struct frame *, struct err *) = {
	[FRAME_STDIN] = on_stdin,
	[FRAME_STDIN_END] = on_stdin_end,
	[FRAME_SIGNAL] = on_signal,
	[FRAME_ACK] = on_ack,
	[FRAME_RESIZE] = on_resize,
	[FRAME_GO] = on_go,
};

static bool can_take(const struct exec *x)
{
	return stdin_feed_can_take(&x->feed);
}

static void listen_to_peer(struct exec *x)
{
	struct frame f;
	struct err e;
	int n = 0;

	while (output_stream_attached(&x->out) && can_take(x) &&
	       (n = frame_conn_next(x->out.peer, &f, &e)) > 0) {
		if (!handlers[f.type])
			n = err_set(&e, ERR_INVALID, "a frame of type %u is out of place", f.type);
		else
			n = handlers[f.type](x, &f, &e);
		if (n < 0)
			break;
		if (output_stream_attached(&x->out))
			frame_conn_took(x->out.peer, &f);
	}
	if (n < 0)
		give_up(x, &e);
}

/* --- what we say --- */

static void say_exited(struct exec *x)
{
	cleanup(buf_done) struct buf record = buf_make(EXEC_EXIT_MAX);
	cleanup(buf_done) struct buf frame = buf_make(FRAME_HEAD + EXEC_EXIT_MAX);

	exec_exit_encode(&record, &x->exit);
	frame_add(&frame, FRAME_EXITED, record.data, record.len);
	frame_conn_put_frame(x->out.peer, &frame);
	x->phase = PHASE_SAID;
}

static void say_u32(struct exec *x, enum frame_type type, uint32_t n)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	frame_add_u32(&frame, type, n);
	frame_conn_put_frame(x->out.peer, &frame);
}

static void say_beside(struct exec *x)
{
	frame_conn_put(x->out.peer, FRAME_BESIDE, 0);
	x->beside = false;
}

/* So that no more standard input is on its way than we can hold; see can_take(). */
static bool must_say_taken(const struct exec *x)
{
	return x->id[0] && stdin_feed_tells(&x->feed);
}

/* The next thing there is to say, if any. The peer must have taken the one before. */
static bool say_next(struct exec *x)
{
	if (x->beside) {
		say_beside(x);
	} else if (x->id[0] && x->signalled > 0) {
		say_u32(x, FRAME_SIGNALLED, x->signalled);
		x->signalled = 0;
	} else if (x->doubt.state == DOUBT_UNSAID) {
		frame_conn_put(x->out.peer, FRAME_KILLED, 0);
		x->doubt.state = DOUBT_SAID;
	} else if (must_say_taken(x)) {
		say_u32(x, FRAME_TAKEN, x->feed.taken);
		x->feed.taken = 0;
	} else if (x->phase == PHASE_ENDED && output_stream_is_empty(&x->out)) {
		say_exited(x);
	} else {
		return false;
	}
	return true;
}

/* Once everything is sent, the peer sees the end and may close in its own time. */
static void step(struct exec *x)
{
	if (!output_stream_attached(&x->out))
		return;
	do
		if (output_stream_flush(&x->out) < 0) {
			peer_left(x);
			return;
		}
	while (!frame_conn_busy(x->out.peer) && say_next(x));
	if (!x->id[0] && x->phase == PHASE_SAID && !frame_conn_busy(x->out.peer) &&
	    x->deadline_us == 0) {
		(void)shutdown(x->out.peer->fd, SHUT_WR);
		x->deadline_us = now_us() + LINGER_US;
	}
}

/* --- connections --- */

static void attach(struct exec *x, int fd, const struct exec_attach *a)
{
	struct err e;

	if (output_stream_attach(&x->out, fd, a->offset, &e) < 0) {
		give_up(x, &e);
		return;
	}
	if (x->phase == PHASE_SAID)
		x->phase = PHASE_ENDED; /* say it again, to this one */
	if (x->doubt.state == DOUBT_SAID)
		x->doubt.state = DOUBT_UNSAID; /* likewise */
	x->feed.taken = x->signalled = 0;
	say_u32(x, FRAME_STARTED, x->pid);
}

static void refuse_late(const struct exec *x, int fd)
{
	cleanup(frame_conn_close) struct frame_conn late = { .fd = -1 };
	struct err e;

	err_set(&e, ERR_NOT_FOUND, "exec %s has ended, and its record is safe", x->id);
	frame_conn_open(&late, fd);
	frame_conn_refuse(&late, &e);
}

static void kill_left(struct exec *x, bool named, int fd)
{
	cleanup(close_fd) int to = fd;
	bool meant = named || x->phase != PHASE_RUNNING;
	uint32_t killed = meant ? (uint32_t)kill_all(x, EXEC_KILLED) : 0;

	(void)send(to, &killed, sizeof(killed), MSG_NOSIGNAL | MSG_DONTWAIT); /* it waits for it */
}

static void on_broker(struct exec *x)
{
	struct broker_packet p;
	int fd = -1;
	int n = broker_take(x->broker, &p, &fd);

	if (n < 0)
		fd_end(&x->broker->fd);
	else if (n > 0 && p.word == BROKER_KILL_LEFT && fd >= 0)
		kill_left(x, p.attach.id[0], fd);
	else if (n > 0 && p.word == BROKER_GIVE && fd >= 0 && x->phase == PHASE_LEFT)
		refuse_late(x, fd);
	else if (n > 0 && p.word == BROKER_GIVE && fd >= 0)
		attach(x, fd, &p.attach);
	else
		close_fd(&fd);
}

/* Of a terminal whose command ended while another process has it open. */
static void on_quiet(struct exec *x)
{
	x->out.streams[0].left = 0;
	x->deadline_us = 0;
	fd_end(&x->cmd.in);
}

static void on_deadline(struct exec *x)
{
	if (x->doubt.until_us != 0) /* it ended before its deadline */
		end_seen(x);
	else if (x->phase == PHASE_RUNNING)
		(void)kill_all(x, EXEC_TIMED_OUT);
	else if (x->phase == PHASE_ENDED && x->pty)
		on_quiet(x);
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
	const struct output_stream *o = &x->out;

	fds[SLOT_SIGNALS] = (struct pollfd){ x->sigfd, POLLIN };
	fds[SLOT_BROKER] = (struct pollfd){ x->broker->fd, POLLIN };
	fds[SLOT_PEER] = (struct pollfd){ o->peer->fd, want(can_take(x), POLLIN) };
	fds[SLOT_PEER].events |= want(frame_conn_busy(o->peer), POLLOUT);
	fds[SLOT_IN] = (struct pollfd){ x->feed.bytes.len > 0 ? x->cmd.in : -1, POLLOUT };
	fds[SLOT_SHELL] = (struct pollfd){ x->link.peer.fd, POLLIN };
	if (x->phase != PHASE_RUNNING)
		fds[SLOT_SHELL].fd = -1;
	for (int i = 0; i < 2; i++) {
		bool ready = x->phase >= PHASE_SAID || output_stream_wants(o, i);

		fds[SLOT_OUT + i] = (struct pollfd){ ready ? o->streams[i].fd : -1, POLLIN };
	}
}

static uint64_t next_us(const struct exec *x)
{
	if (x->doubt.until_us != 0 && (x->deadline_us == 0 || x->doubt.until_us < x->deadline_us))
		return x->doubt.until_us;
	return x->deadline_us;
}

static int timeout_ms(const struct exec *x)
{
	uint64_t now = now_us(), next = next_us(x), left_ms;

	if (broker_holds(x->broker))
		return 0;
	if (x->link.input)
		return INPUT_US / 1000;
	if (x->phase == PHASE_LEFT && !in_shell(x) && !tree_on_linux(&x->tree))
		return LEFT_LOOK_MS;
	if (next == 0)
		return -1;
	if (next <= now)
		return 0;
	left_ms = (next - now) / 1000 + 1;
	return left_ms > POLL_MAX_MS ? POLL_MAX_MS : (int)left_ms;
}

/* What it said before it closed still counts: an acknowledgement is the last word of many. */
static void on_peer(struct exec *x, short events)
{
	if (events & POLLOUT && output_stream_flush(&x->out) < 0) {
		peer_left(x);
		return;
	}
	if (events & POLLIN) {
		int gone = frame_conn_read(x->out.peer);

		listen_to_peer(x);
		if (gone < 0 && output_stream_attached(&x->out))
			peer_left(x);
		return;
	}
	/* A closed connection shows even while we do not read from it. */
	if (events & (POLLHUP | POLLERR | POLLNVAL))
		peer_left(x);
}

/* A shell opens its command's input when it comes to it. What was sent waits until then. */
static void open_input(struct exec *x)
{
	x->cmd.in = shell_link_input(&x->link);
	if (x->cmd.in >= 0)
		feed_write(x);
}

static void on_signals(struct exec *x)
{
	struct signalfd_siginfo info;

	/* Many ends may be one signal: reap() asks the kernel. */
	while (read(x->sigfd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTERM && info.ssi_pid == 1)
			x->stopping = true;
	reap(x);
	end_whole(x);
}

static void take_output(struct exec *x, int i)
{
	if (x->phase >= PHASE_SAID)
		output_stream_discard(&x->out, i);
	else if (output_stream_take(&x->out, i) < 0)
		peer_left(x);
	if (x->pty && x->phase == PHASE_ENDED && x->deadline_us != 0)
		x->deadline_us = now_us() + PTY_QUIET_US;
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
	if (fds[SLOT_PEER].revents && output_stream_attached(&x->out))
		on_peer(x, fds[SLOT_PEER].revents);
	for (int i = 0; i < 2; i++)
		if (fds[SLOT_OUT + i].revents && x->out.streams[i].fd >= 0)
			take_output(x, i);
	if (x->link.input)
		open_input(x);
	if (fds[SLOT_SHELL].revents)
		hear_shell(x, 0);
	if (fds[SLOT_BROKER].revents || broker_holds(x->broker))
		on_broker(x);
	if (fds[SLOT_SIGNALS].revents)
		on_signals(x);
	if (x->doubt.until_us != 0 && now_us() >= x->doubt.until_us)
		end_seen(x);
	if (x->deadline_us != 0 && now_us() >= x->deadline_us)
		on_deadline(x);
	step(x);
}

static bool is_over(const struct exec *x)
{
	return x->phase == PHASE_LEFT && x->out.streams[0].fd < 0 && x->out.streams[1].fd < 0 &&
	       !has_left(x);
}

/* From now on it can be found by its id; no other process can have it. */
static int take_id(struct exec *x, const char *id, struct err *e)
{
	struct broker_packet p = { .word = BROKER_TAKE };

	memcpy(p.attach.id, id, sizeof(p.attach.id));
	switch (broker_ask(x->broker, &p, -1)) {
	case BROKER_BESIDE:
		x->beside = true;
		/* fall through */
	case BROKER_YES:
		memcpy(x->id, id, sizeof(x->id));
		return 0;
	case BROKER_NO:
		return err_set(e, ERR_CONFLICT, "there is an exec %s already, or was", id);
	default:
		return err_set(e, ERR_BUSY, "the sandbox's init does not answer");
	}
}

static int hold(void *data, pid_t pid, struct err *e)
{
	return hold_until_go(data, pid, e);
}

static int start_command(struct exec *x, const struct exec_request *q, struct frame_conn *peer,
			 struct err *e)
{
	struct command_more more = { .held = q->flags & EXEC_HOLD ? hold : NULL, .data = peer };

	if (q->shell[0])
		return shell_link_open(&x->link, q, x->broker, &x->cmd, e);
	tree_open(&x->tree, x->broker);
	return command_start_with(q, &x->tree, &more, &x->cmd, e);
}

static int start(struct exec *x, struct frame_conn *peer, const struct frame *request,
		 struct err *e)
{
	cleanup(exec_request_done) struct exec_request q = { 0 };
	sigset_t heard;

	if (exec_request_decode(request->payload, &q, e) < 0)
		return -1;
	frame_conn_took(peer, request);
	if (q.id[0] && take_id(x, q.id, e) < 0)
		return -1;
	sigemptyset(&heard);
	sigaddset(&heard, SIGCHLD);
	/* When the sandbox is told to end, the command hears it too: we stay to say how it did. */
	sigaddset(&heard, SIGTERM);
	sigprocmask(SIG_SETMASK, &heard, NULL);
	x->sigfd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	if (x->sigfd < 0)
		return err_sys(e, errno, "signalfd");
	x->started_us = now_us();
	if (start_command(x, &q, peer, e) < 0)
		return -1;
	x->pid = (uint32_t)x->cmd.pid;
	x->pty = q.flags & EXEC_PTY;
	x->whole = q.flags & EXEC_WHOLE && !in_shell(x);
	if (q.flags & EXEC_DOUBT && !in_shell(x) && tree_on_linux(&x->tree))
		x->doubt.state = DOUBT_NONE;
	output_stream_open(&x->out, peer, x->cmd.out, x->cmd.err);
	x->out.fleeting = !x->id[0];
	if (q.timeout_ms > 0 && q.timeout_ms < UINT64_MAX / 2000)
		x->deadline_us = x->started_us + q.timeout_ms * 1000;
	return 0;
}

void exec_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	struct exec x = { .feed = stdin_feed_make(),
			  .broker = broker,
			  .cmd = { .in = -1 },
			  .link = { .peer = { .fd = -1 } },
			  .sigfd = -1 };
	struct err e;

	if (start(&x, p, request, &e) < 0) {
		frame_conn_refuse(p, &e);
		tree_close(&x.tree);
		return;
	}
	say_u32(&x, FRAME_STARTED, x.pid);
	step(&x);
	listen_to_peer(&x); /* what came together with the request */
	while (!is_over(&x))
		turn(&x);
	tree_close(&x.tree);
	shell_link_close(&x.link);
	buf_done(&x.feed.bytes);
	fd_end(&x.sigfd);
	output_stream_close(&x.out);
}

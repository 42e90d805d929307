#include "init/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init/command.h"
#include "init/pid1-broker.h"
#include "init/shell-link.h"
#include "init/shell-text.h"
#include "proto/shell.h"

#define SAID_MAX     65536    /* of what the shell writes to us */
#define KILL_WAIT_NS 10000000 /* between two kills, if no child ended sooner */
#define DEAF_MS      1000     /* between looks whether the shell still listens */
#define STARTS_MAX   3        /* that fail one after another: then the shell is gone */

enum phase {
	PHASE_STARTING, /* until it says "ready" */
	PHASE_IDLE,
	PHASE_RUNNING,
	PHASE_KEEPING, /* the command has ended; its state is being written */
};

/* A command: its process's end of the link, and what it wants. */
struct job {
	struct frame_conn peer;
	bool asked; /* the request is there */
	char dir[SHELL_DIR_SIZE];
	struct exec_request q;
	uint32_t signum; /* the last that was asked for */
	uint64_t started_us;
};

struct shell {
	struct shell_request q;
	enum shell_kind kind;
	enum phase phase;
	char dir[SHELL_DIR_SIZE];
	char key[SHELL_KEY_SIZE];
	char cwd[EXEC_CWD_SIZE];
	struct command bash;
	struct rusage before; /* of the shell, when its command began */
	struct tree tree;     /* of the command */
	struct buf typed;     /* for its standard input */
	struct buf said;
	int status, sigfd;
	struct broker *broker;
	bool has_state, fresh, ending;
	unsigned last, starts, command_restarts;
	uint32_t restarts;
	struct job *jobs[SHELL_QUEUE_MAX]; /* the first one runs, unless we are idle */
	size_t count;
};

enum slot {
	SLOT_SIGNALS,
	SLOT_BROKER,
	SLOT_STATUS,
	SLOT_IN,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_JOBS,
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

/* ---- the process ---- */

static void new_key(struct shell *s)
{
	uint8_t raw[(SHELL_KEY_SIZE - 1) / 2];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		abort(); /* it never fails for so few */
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(s->key + 2 * i, 3, "%02x", raw[i]);
}

/* Only what the kernel says of it; a variable could be anything. */
static void learn_cwd(struct shell *s)
{
	char path[64], cwd[EXEC_CWD_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cwd", s->bash.pid);
	n = readlink(path, cwd, sizeof(cwd) - 1);
	if (n <= 0)
		return;
	cwd[n] = '\0';
	memcpy(s->cwd, cwd, (size_t)n + 1);
}

/* Where it tells us how a command ended; anew if the guest has removed it. */
static int status_open(struct shell *s, struct err *e)
{
	char path[SHELL_DIR_SIZE + 8];
	struct stat here, there;

	snprintf(path, sizeof(path), "%s/status", s->dir);
	if (s->status >= 0 && fstat(s->status, &here) == 0 && stat(path, &there) == 0 &&
	    here.st_ino == there.st_ino && here.st_dev == there.st_dev)
		return 0;
	fd_end(&s->status);
	shell_dir_remove(s->dir);
	s->has_state = false;
	if (shell_dir_make(s->dir, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/status", s->dir);
	s->status = mkfifo(path, 0600) < 0 ? -1 : open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return s->status < 0 ? err_sys(e, errno, "make a pipe for a shell") : 0;
}

static int start_as(struct shell *s, enum shell_kind kind, struct err *e)
{
	cleanup(exec_request_done) struct exec_request q = { .flags = EXEC_STDIN };
	int n;

	strv_add(&q.argv, kind == SHELL_BASH ? "bash" : "sh");
	if (kind == SHELL_BASH) {
		strv_add(&q.argv, "--noprofile");
		strv_add(&q.argv, "--norc");
	}
	strv_add(&q.argv, "-s");
	for (size_t i = 0; i < s->q.env.len; i++)
		strv_add(&q.env, s->q.env.items[i]);
	memcpy(q.cwd, s->cwd, sizeof(q.cwd));
	n = command_start(&q, &s->tree, &s->bash, e);
	s->kind = kind;
	return n;
}

static int bash_start(struct shell *s, struct err *e)
{
	struct shell_text t = { .dir = s->dir, .key = s->key };

	tree_close(&s->tree);
	tree_open(&s->tree, s->broker);
	buf_clear(&s->typed);
	buf_clear(&s->said);
	new_key(s);
	if (status_open(s, e) < 0)
		return -1;
	if (start_as(s, SHELL_BASH, e) < 0 &&
	    (e->code != ERR_NOT_FOUND || start_as(s, SHELL_SH, e) < 0))
		return -1;
	learn_cwd(s);
	t.kind = s->kind;
	shell_text_begin(&s->typed, &t, s->has_state);
	s->phase = PHASE_STARTING;
	s->starts++;
	return 0;
}

static void bash_forget(struct shell *s)
{
	s->bash.pid = 0;
	fd_end(&s->bash.in);
	fd_end(&s->bash.out);
	fd_end(&s->bash.err);
}

/* ---- its commands ---- */

static void job_free(struct job *j)
{
	frame_conn_close(&j->peer);
	exec_request_done(&j->q);
	free(j);
}

static void job_remove(struct shell *s, size_t i)
{
	job_free(s->jobs[i]);
	s->count--;
	memmove(s->jobs + i, s->jobs + i + 1, (s->count - i) * sizeof(void *));
}

static void say(struct job *j, const struct buf *frame)
{
	if (j->peer.fd >= 0 && !frame_conn_busy(&j->peer)) {
		frame_conn_put_frame(&j->peer, frame);
		(void)!frame_conn_flush(&j->peer); /* small, into an empty socket */
	}
}

static void job_refuse(struct shell *s, size_t i, const struct err *why)
{
	frame_conn_refuse(&s->jobs[i]->peer, why);
	job_remove(s, i);
}

static uint64_t us_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static struct timeval ticks(uint64_t n)
{
	return (struct timeval){ .tv_sec = (time_t)(n / 100),
				 .tv_usec = (suseconds_t)(n % 100 * 10000) };
}

/* Of the shell and those it has waited for. Nothing is changed if it cannot be read. */
static void usage_of(pid_t pid, struct rusage *ret)
{
	uint64_t t[4];

	if (tree_ticks(pid, t) < 0)
		return;
	ret->ru_utime = ticks(t[0] + t[2]);
	ret->ru_stime = ticks(t[1] + t[3]);
}

static uint64_t since(const struct timeval *now, const struct timeval *before)
{
	return us_of(now) > us_of(before) ? us_of(now) - us_of(before) : 0;
}

/* The first one has ended: its one record. */
static void job_end(struct shell *s, struct exec_exit *x, const struct rusage *use)
{
	cleanup(buf_done) struct buf record = buf_make(EXEC_EXIT_MAX);
	cleanup(buf_done) struct buf frame = buf_make(FRAME_HEAD + EXEC_EXIT_MAX);
	struct job *j = s->jobs[0];

	if (j->started_us > 0)
		x->wall_us = now_us() - j->started_us;
	x->user_us = since(&use->ru_utime, &s->before.ru_utime);
	x->system_us = since(&use->ru_stime, &s->before.ru_stime);
	x->restarted = s->fresh || s->restarts != s->command_restarts;
	if (x->kind == EXEC_EXITED)
		s->last = x->code;
	memcpy(x->cwd, s->cwd, sizeof(x->cwd));
	exec_exit_encode(&record, x);
	frame_add(&frame, FRAME_EXITED, record.data, record.len);
	say(j, &frame);
	job_remove(s, 0);
}

static void begin(struct shell *s)
{
	struct job *j = s->jobs[0];
	struct shell_text t = {
		.kind = s->kind,
		.dir = s->dir,
		.key = s->key,
		.command_dir = j->dir,
		.command = j->q.argv.items[0],
		.env = &j->q.env,
		.cwd = j->q.cwd,
		.back = s->cwd,
		.input = j->q.flags & EXEC_STDIN,
		.last = s->last,
	};

	tree_close(&s->tree);
	tree_open(&s->tree, s->broker);
	tree_adopt(&s->tree, s->bash.pid);
	s->before = (struct rusage){ 0 };
	usage_of(s->bash.pid, &s->before);
	new_key(s);
	shell_text_command(&s->typed, &t);
	j->started_us = now_us();
	s->command_restarts = s->restarts;
	s->phase = PHASE_RUNNING;
}

static void begin_next(struct shell *s)
{
	if (s->phase == PHASE_IDLE && s->count > 0 && s->jobs[0]->asked)
		begin(s);
}

/* ---- its end ---- */

static void bash_restart(struct shell *s)
{
	struct err e;

	if (s->phase == PHASE_STARTING && s->has_state)
		s->has_state = false; /* perhaps that is what it dies of */
	s->restarts++;
	if (bash_start(s, &e) < 0) {
		memcpy(s->cwd, "/", 2); /* its directory is gone */
		if (bash_start(s, &e) < 0)
			s->ending = true;
	}
	if (s->starts > STARTS_MAX)
		s->ending = true;
}

static void on_bash_ended(struct shell *s, int status, const struct rusage *use)
{
	struct exec_exit x = { 0 };
	bool running = s->phase == PHASE_RUNNING;

	bash_forget(s);
	if (!s->ending)
		bash_restart(s);
	if (running) {
		x.code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
		x.signum = WIFEXITED(status) ? 0 : (uint32_t)WTERMSIG(status);
		x.kind = exec_end_word(&(struct exec_end){ .signum = (int)x.signum,
							   .asked = (int)s->jobs[0]->signum });
		job_end(s, &x, use);
	}
	s->fresh = true;
}

static void reap(struct shell *s)
{
	struct rusage use;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0)
		if (pid == s->bash.pid)
			on_bash_ended(s, status, &use);
}

/* Everything its command started, and the shell itself, which could not be told to stop. */
static void kill_tree(struct shell *s)
{
	pid_t pid = s->bash.pid;
	struct rusage use = { 0 }, u;
	int status = SIGKILL, st;
	sigset_t child;
	pid_t got;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (tree_kill(&s->tree) > 0) {
		sigtimedwait(&child, NULL, &(struct timespec){ .tv_nsec = KILL_WAIT_NS });
		while ((got = wait4(-1, &st, WNOHANG, &u)) > 0)
			if (got == pid) {
				use = u;
				status = st;
				s->bash.pid = 0;
			}
	}
	if (s->bash.pid == 0 && pid > 0)
		on_bash_ended(s, status, &use);
}

/* ---- what the shell says ---- */

static void on_exit_word(struct shell *s, unsigned code)
{
	struct exec_exit x = { .kind = EXEC_EXITED, .code = code };
	struct rusage use = s->before;

	if (s->phase != PHASE_RUNNING)
		return;
	s->phase = PHASE_KEEPING;
	if (!s->jobs[0]->q.cwd[0])
		learn_cwd(s);
	usage_of(s->bash.pid, &use);
	job_end(s, &x, &use);
	s->fresh = false;
}

static void on_kept(struct shell *s, bool kept)
{
	char from[SHELL_DIR_SIZE + 8], to[SHELL_DIR_SIZE + 8];

	if (s->phase != PHASE_KEEPING)
		return;
	snprintf(from, sizeof(from), "%s/new", s->dir);
	snprintf(to, sizeof(to), "%s/state", s->dir);
	if (kept && rename(from, to) == 0)
		s->has_state = true;
	s->phase = PHASE_IDLE;
}

static void on_status(struct shell *s)
{
	char chunk[4096];
	ssize_t n = read(s->status, chunk, sizeof(chunk));
	enum shell_word word;
	unsigned code = 0;

	if (n <= 0)
		return;
	if (s->said.len > SAID_MAX - sizeof(chunk))
		buf_clear(&s->said); /* no line of ours is so long */
	buf_add(&s->said, chunk, (size_t)n);
	while ((word = shell_text_said(&s->said, s->key, &code)) != SHELL_WORD_NONE) {
		if (word == SHELL_WORD_EXIT)
			on_exit_word(s, code);
		else if (word == SHELL_WORD_KEPT || word == SHELL_WORD_UNKEPT)
			on_kept(s, word == SHELL_WORD_KEPT);
		else if (s->phase == PHASE_STARTING) {
			s->phase = PHASE_IDLE;
			s->starts = 0;
		}
	}
}

static void type(struct shell *s)
{
	ssize_t n = write(s->bash.in, s->typed.data, s->typed.len);

	if (n > 0)
		buf_drop(&s->typed, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		fd_end(&s->bash.in); /* it ends, and we shall hear of it */
}

static void discard(int *fd)
{
	char chunk[4096];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_end(fd);
}

/*
 * bash reads its next line when the one before is done. If it has read all we typed
 * and the command has not ended, it does not carry out what it reads (`set -n`), and
 * never will.
 */
static bool is_deaf(const struct shell *s)
{
	int waiting = 0;

	return s->kind == SHELL_BASH && s->phase == PHASE_RUNNING && s->typed.len == 0 &&
	       s->bash.in >= 0 && ioctl(s->bash.in, FIONREAD, &waiting) == 0 && waiting == 0;
}

/* ---- what others want of it ---- */

static void job_stop(struct shell *s, size_t i, uint32_t signum)
{
	struct exec_exit x = { .kind = EXEC_KILLED, .signum = signum };
	struct rusage none = { 0 };

	s->jobs[i]->signum = signum;
	if (i == 0 && s->phase == PHASE_RUNNING) {
		if (signum == SIGKILL)
			kill_tree(s);
		else
			tree_signal(&s->tree, (int)signum);
		return;
	}
	if (i > 0) { /* job_end() is of the first */
		struct job *j = s->jobs[i];

		memmove(s->jobs + 1, s->jobs, i * sizeof(void *));
		s->jobs[0] = j;
	}
	job_end(s, &x, &none); /* it never ran */
}

static int job_ask(struct shell *s, struct job *j, const struct frame *f, struct err *e)
{
	cleanup(buf_done) struct buf frame = buf_make(64);
	struct reader r = reader_make(f->payload.data, f->payload.len);
	struct bytes rest;
	size_t used;

	reader_str(&r, j->dir, sizeof(j->dir));
	used = strlen(j->dir) + 2;
	if (j->asked || f->type != FRAME_EXEC || used > f->payload.len)
		return err_set(e, ERR_INVALID, "a request that cannot be read");
	rest = (struct bytes){ f->payload.data + used, f->payload.len - used };
	if (exec_request_decode(rest, &j->q, e) < 0)
		return -1;
	j->asked = true;
	frame_add_u32(&frame, FRAME_STARTED, (uint32_t)s->bash.pid);
	say(j, &frame);
	return 0;
}

/* False if it is not there any more. */
static bool job_listen(struct shell *s, size_t i)
{
	struct job *j = s->jobs[i];
	int gone = frame_conn_read(&j->peer);
	struct frame f;
	struct err e;
	uint32_t signum;
	int n;

	while ((n = frame_conn_next(&j->peer, &f, &e)) > 0) {
		if (!j->asked) {
			if (job_ask(s, j, &f, &e) < 0) {
				job_refuse(s, i, &e);
				return false;
			}
			frame_conn_took(&j->peer, &f);
			continue;
		}
		n = f.type == FRAME_SIGNAL ? frame_u32(&f, &signum, &e) : -1;
		frame_conn_took(&j->peer, &f);
		if (n < 0)
			break;
		job_stop(s, i, signum);
		if (s->count <= i || s->jobs[i] != j)
			return false;
	}
	if (gone < 0 || n < 0) {
		if (j->asked)
			job_stop(s, i, SIGKILL);
		else
			job_remove(s, i);
		return false;
	}
	return true;
}

static void job_add(struct shell *s, int fd)
{
	struct job *j = xcalloc(1, sizeof(*j));
	struct err e;

	frame_conn_open(&j->peer, fd);
	s->jobs[s->count++] = j;
	if (s->count == SHELL_QUEUE_MAX) { /* the last place is for saying this */
		err_set(&e, ERR_BUSY, "%d commands wait in shell %s already", SHELL_QUEUE_MAX - 1,
			s->q.name);
		job_refuse(s, s->count - 1, &e);
	}
}

static void tell_state(struct shell *s, int fd)
{
	cleanup(buf_done) struct buf record = buf_make(8192), frame = buf_make(8192 + FRAME_HEAD);
	cleanup(frame_conn_close) struct frame_conn p = { .fd = -1 };
	struct shell_state state = {
		.pid = (uint32_t)s->bash.pid,
		.waiting = (uint32_t)s->count,
		.restarts = s->restarts,
	};

	if (s->phase == PHASE_RUNNING)
		learn_cwd(s);
	memcpy(state.cwd, s->cwd, sizeof(state.cwd));
	shell_state_encode(&record, &state);
	frame_add(&frame, FRAME_SHELL_STATE, record.data, record.len);
	frame_conn_open(&p, fd);
	frame_conn_put_frame(&p, &frame);
	(void)!frame_conn_flush(&p); /* it left first, or gets all of it */
}

/* Everything that was ever started in it. */
static void end_all(struct shell *s)
{
	s->ending = true;
	tree_widen(&s->tree);
	while (s->count > 0)
		job_stop(s, s->count - 1, SIGKILL);
	kill_tree(s);
}

static void refuse_late(void *data, int fd)
{
	cleanup(frame_conn_close) struct frame_conn late = { .fd = -1 };
	const struct shell *s = data;
	struct err e;

	err_set(&e, ERR_NOT_FOUND, "there is no shell %s", s->q.name);
	frame_conn_open(&late, fd);
	frame_conn_refuse(&late, &e);
}

static void leave(struct shell *s)
{
	broker_leave(s->broker, refuse_late, s);
}

static void on_broker(struct shell *s)
{
	struct broker_packet p;
	int fd = -1;
	int n = broker_take(s->broker, &p, &fd);

	if (n < 0)
		fd_end(&s->broker->fd);
	if (n <= 0 || fd < 0)
		return;
	switch ((enum shell_verb)p.attach.offset[0]) {
	case SHELL_RUN:
		return job_add(s, fd);
	case SHELL_ASK:
		return tell_state(s, fd);
	case SHELL_END:
		end_all(s);
		leave(s);
		return tell_state(s, fd);
	}
	close_fd(&fd);
}

/* ---- the loop ---- */

static void on_signals(struct shell *s)
{
	struct signalfd_siginfo info;

	while (read(s->sigfd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTERM)
			end_all(s);
	reap(s);
}

static int timeout_ms(const struct shell *s)
{
	if (broker_holds(s->broker))
		return 0;
	return s->phase == PHASE_RUNNING ? DEAF_MS : -1;
}

static void turn(struct shell *s)
{
	struct pollfd fds[SLOT_JOBS + SHELL_QUEUE_MAX];
	size_t count = s->count;
	int n;

	fds[SLOT_SIGNALS] = (struct pollfd){ s->sigfd, POLLIN };
	fds[SLOT_BROKER] = (struct pollfd){ broker_listens(s->broker), POLLIN };
	fds[SLOT_STATUS] = (struct pollfd){ s->status, POLLIN };
	fds[SLOT_IN] = (struct pollfd){ s->typed.len > 0 ? s->bash.in : -1, POLLOUT };
	fds[SLOT_OUT] = (struct pollfd){ s->bash.out, POLLIN };
	fds[SLOT_ERR] = (struct pollfd){ s->bash.err, POLLIN };
	for (size_t i = 0; i < count; i++)
		fds[SLOT_JOBS + i] = (struct pollfd){ s->jobs[i]->peer.fd, POLLIN };
	n = poll(fds, SLOT_JOBS + count, timeout_ms(s));
	if (n < 0)
		return;
	if (n == 0 && is_deaf(s))
		kill_tree(s);
	if (fds[SLOT_STATUS].revents)
		on_status(s); /* before we look whether it has died since */
	for (size_t i = count; i-- > 0;)
		if (fds[SLOT_JOBS + i].revents && i < s->count &&
		    s->jobs[i]->peer.fd == fds[SLOT_JOBS + i].fd)
			(void)job_listen(s, i);
	if (fds[SLOT_IN].revents && s->bash.in >= 0)
		type(s);
	if (fds[SLOT_OUT].revents && s->bash.out >= 0)
		discard(&s->bash.out);
	if (fds[SLOT_ERR].revents && s->bash.err >= 0)
		discard(&s->bash.err);
	if (fds[SLOT_BROKER].revents || broker_holds(s->broker))
		on_broker(s);
	if (fds[SLOT_SIGNALS].revents)
		on_signals(s);
	begin_next(s);
}

static int take_name(struct shell *s, struct err *e)
{
	struct broker_packet p = { .word = BROKER_TAKE };

	snprintf(p.attach.id, sizeof(p.attach.id), ".%s", s->q.name);
	switch (broker_ask_on(s->broker, &p, -1)) {
	case BROKER_YES:
		return 0;
	case BROKER_NO:
		return err_set(e, ERR_CONFLICT, "a shell %s already exists", s->q.name);
	default:
		return err_set(e, ERR_BUSY, "the sandbox's init does not answer");
	}
}

static int start(struct shell *s, const struct frame *request, struct err *e)
{
	sigset_t set;

	if (shell_request_decode(request->payload, &s->q, e) < 0 || take_name(s, e) < 0)
		return -1;
	memcpy(s->cwd, s->q.cwd, sizeof(s->cwd));
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
	s->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->sigfd < 0)
		return err_sys(e, errno, "signalfd");
	return bash_start(s, e);
}

void shell_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	struct shell s = {
		.bash = { .in = -1, .out = -1, .err = -1 },
		.typed = buf_make(SHELL_TEXT_MAX),
		.said = buf_make(SAID_MAX + 1),
		.status = -1,
		.sigfd = -1,
		.broker = broker,
	};
	struct err e;

	if (start(&s, request, &e) < 0) {
		frame_conn_refuse(p, &e);
	} else {
		int fd = take_fd(p->fd);

		tell_state(&s, fd);
		while (!s.ending)
			turn(&s);
		tree_widen(&s.tree);
		kill_tree(&s); /* it may have ended by itself: nothing it started outlives it */
		leave(&s);
		err_set(&e, ERR_CONFLICT, "the shell %s has ended", s.q.name);
		while (s.count > 0)
			job_refuse(&s, s.count - 1, &e);
	}
	shell_dir_remove(s.dir);
	tree_close(&s.tree);
	shell_request_done(&s.q);
	buf_done(&s.typed);
	buf_done(&s.said);
}

/* ---- connections for a shell ---- */

static void pass_on(struct frame_conn *p, const struct frame *request, struct broker *broker,
		    enum shell_verb verb)
{
	struct broker_packet packet = { .word = BROKER_GIVE, .attach = { .offset = { verb } } };
	struct reader r = reader_make(request->payload.data, request->payload.len);
	char name[SHELL_NAME_SIZE];
	enum broker_word answer;
	struct err e = { 0 };

	reader_str(&r, name, sizeof(name));
	if (!reader_done(&r) || shell_name_check(name, &e) < 0) {
		if (!e.code)
			err_set(&e, ERR_INVALID, "a shell's name that cannot be read");
		frame_conn_refuse(p, &e);
		return;
	}
	snprintf(packet.attach.id, sizeof(packet.attach.id), ".%s", name);
	answer = broker_ask_on(broker, &packet, p->fd);
	if (answer == BROKER_YES)
		return; /* our end of it closes, the other process has its own */
	if (answer == BROKER_UNSEEN && verb == SHELL_END)
		(void)broker_unseen(&e);
	else if (answer == BROKER_NO || answer == BROKER_UNSEEN)
		err_set(&e, ERR_NOT_FOUND, "there is no shell %s", name);
	else
		err_set(&e, ERR_BUSY, "the shell %s takes no connection now", name);
	frame_conn_refuse(p, &e);
}

void shell_ask_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	pass_on(p, request, broker, SHELL_ASK);
}

void shell_end_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	pass_on(p, request, broker, SHELL_END);
}

#include "init/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/pty.h"
#include "init/user.h"
#include "lib/errno-map.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define DEFAULT_HOME "/root"
#define PIPE_BYTES   (1 << 20)
#define PARK_FROM    16 /* where descriptors wait while 0, 1 and 2 are put in place */

/* musl's own headers lack these; the numbers are the kernel's, on every architecture. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U
#endif

enum stage {
	STAGE_SETUP,
	STAGE_USER,
	STAGE_CWD,
	STAGE_EXEC,
};

/* What the new process says if it never became the command. */
struct failure {
	enum stage stage;
	int why;
};

struct pipes {
	int in[2], out[2], err[2], status[2], hold[2];
	int slave; /* of a terminal, instead of the first three */
};

static void pair_close(int pair[2])
{
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

static void pipes_close(struct pipes *p)
{
	pair_close(p->in);
	pair_close(p->out);
	pair_close(p->err);
	pair_close(p->status);
	pair_close(p->hold);
	close_fd(&p->slave);
}

/* Both our ends are the master: bytes for the terminal, and what it shows. */
static int terminal_open(struct pipes *p, const struct exec_size *size, struct err *e)
{
	if (pipe2(p->status, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make pipes");
	if (pty_open(size, &p->out[0], &p->slave, e) < 0)
		return -1;
	p->in[1] = fcntl(p->out[0], F_DUPFD_CLOEXEC, 0);
	return p->in[1] < 0 ? err_sys(e, errno, "make a terminal") : 0;
}

static int pipes_open(struct pipes *p, bool with_stdin)
{
	if ((with_stdin && pipe2(p->in, O_CLOEXEC) < 0) || pipe2(p->out, O_CLOEXEC) < 0 ||
	    pipe2(p->err, O_CLOEXEC) < 0 || pipe2(p->status, O_CLOEXEC) < 0)
		return -1;
	/* Wider pipes are only faster: a user over the kernel's share gets plain ones. */
	(void)fcntl(p->in[1], F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(p->out[0], F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(p->err[0], F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(p->in[1], F_SETFL, O_NONBLOCK);
	(void)fcntl(p->out[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(p->err[0], F_SETFL, O_NONBLOCK);
	return 0;
}

/* Is this variable set again, further back in the list? */
static bool is_set_in(const char *var, char *const *list)
{
	size_t name = strcspn(var, "=") + 1;

	for (; list && *list; list++)
		if (strncmp(*list, var, name) == 0)
			return true;
	return false;
}

static void env_build(const struct exec_request *q, const struct tree *t, struct strv *env)
{
	for (char **own = environ; *own; own++)
		if (!is_set_in(*own, q->env.items) && !is_set_in(*own, own + 1))
			strv_add(env, *own);
	for (size_t i = 0; i < q->env.len; i++)
		if (!is_set_in(q->env.items[i], q->env.items + i + 1))
			strv_add(env, q->env.items[i]);
	if (!is_set_in("PATH=", env->items))
		strv_add(env, "PATH=" DEFAULT_PATH);
	if (!is_set_in("HOME=", env->items))
		strv_add(env, "HOME=" DEFAULT_HOME);
	tree_mark(t, env);
}

static int place_fds(const struct pipes *p, const struct command_more *more)
{
	int want[3 + COMMAND_MORE_MAX] = { p->in[0], p->out[1], p->err[1] };
	int count = 3 + (int)more->count;

	for (size_t i = 0; i < more->count; i++)
		want[3 + i] = more->fds[i];
	if (p->slave >= 0)
		want[0] = want[1] = want[2] = p->slave;
	if (want[0] < 0)
		want[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < count; i++) {
		want[i] = fcntl(want[i], F_DUPFD_CLOEXEC, PARK_FROM);
		if (want[i] < 0)
			return -1;
	}
	/* All of ours are close-on-exec already; a kernel without the call loses nothing. */
	(void)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
	for (int i = 0; i < count; i++)
		if (dup2(want[i], i) < 0)
			return -1;
	return 0;
}

static void reset_signals(void)
{
	/* Asked of the kernel: musl keeps signals 32 to 34 for itself and would refuse. */
	static const uint64_t dfl[8]; /* the kernel's struct, all zero: SIG_DFL */
	sigset_t none;

	for (int n = 1; n < NSIG; n++)
		(void)syscall(SYS_rt_sigaction, n, dfl, NULL, 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static enum stage become(const struct exec_request *q, const struct pipes *p,
			 const struct command_more *more, struct strv *env)
{
	if (setsid() < 0)
		return STAGE_SETUP;
	if (place_fds(p, more) < 0 || (p->slave >= 0 && pty_control(STDIN_FILENO) < 0))
		return STAGE_SETUP;
	if (user_become() < 0)
		return STAGE_USER;
	if (q->cwd[0] && chdir(q->cwd) < 0)
		return STAGE_CWD;
	environ = env->items; /* execvp() looks for PATH there */
	reset_signals();
	execvp(q->argv.items[0], q->argv.items);
	return STAGE_EXEC;
}

/* Its parent says when, or is gone with that. */
static void wait_to_go(struct pipes *p)
{
	char go;
	ssize_t n;

	if (p->hold[0] < 0)
		return;
	close_fd(&p->hold[1]);
	do
		n = read(p->hold[0], &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
}

static no_return void child(const struct exec_request *q, struct pipes *p,
			    const struct command_more *more,
			    struct strv *env)
{
	int status = fcntl(p->status[1], F_DUPFD_CLOEXEC, PARK_FROM);
	struct failure f = { 0 };

	wait_to_go(p);
	f.stage = become(q, p, more, env);
	f.why = errno;
	/* Small enough to be written at once; if its reader is gone, no answer is wanted. */
	(void)!write(status, &f, sizeof(f));
	_exit(127);
}

static int say_why(const struct failure *f, const struct exec_request *q, struct err *e)
{
	bool absent = f->why == ENOENT || f->why == ENOTDIR;
	const char *name = q->argv.items[0];

	if (f->stage == STAGE_CWD && absent)
		return err_set(e, ERR_INVALID, "no such directory: %.200s", q->cwd);
	if (f->stage == STAGE_CWD)
		return err_set(e, ERR_INVALID, "cannot enter %.200s: %s", q->cwd,
			       strerror(f->why));
	if (f->stage == STAGE_EXEC && absent) {
		err_set(e, ERR_NOT_FOUND, "no such command: %.200s", name);
		return err_reason(e, REASON_NO_COMMAND, 0);
	}
	if (f->stage == STAGE_EXEC && f->why != ENOMEM && f->why != EAGAIN && f->why != EIO) {
		err_set(e, ERR_INVALID, "cannot run %.200s: %s", name, strerror(f->why));
		return err_reason(e, REASON_CANNOT_RUN, 0);
	}
	return err_sys(e, f->why, "cannot start %.150s", name);
}

static int wait_for_exec(int status, pid_t pid, const struct exec_request *q, struct err *e)
{
	struct failure f = { 0 };
	ssize_t n;

	do
		n = read(status, &f, sizeof(f));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return say_why(&f, q, e);
}

static int let_go(struct pipes *p, pid_t pid, const struct tree *t, const struct command_more *more,
		  struct err *e)
{
	if (p->hold[1] < 0)
		return 0;
	if (tree_add(t, pid, e) == 0 && (!more->held || more->held(more->data, pid, e) == 0)) {
		(void)!write(p->hold[1], "", 1); /* if it was killed meanwhile, that shows */
		return 0;
	}
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -1;
}

int command_start_with(const struct exec_request *q, struct tree *t,
		       const struct command_more *more, struct command *ret, struct err *e)
{
	cleanup(pipes_close) struct pipes p = {
		{ -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, -1
	};
	cleanup(strv_done) struct strv env = { 0 };
	pid_t pid;

	if (q->flags & EXEC_PTY) {
		if (terminal_open(&p, &q->size, e) < 0)
			return -1;
	} else if (pipes_open(&p, q->flags & EXEC_STDIN) < 0) {
		return err_sys(e, errno, "make pipes");
	}
	if ((more->held || tree_needs_add(t)) && pipe2(p.hold, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make pipes");
	env_build(q, t, &env);
	pid = fork();
	if (pid < 0)
		return err_set(e, ERR_LIMIT, "the sandbox has no room for another process: %s",
			       strerror(errno));
	if (pid == 0)
		child(q, &p, more, &env);
	close_fd(&p.status[1]);
	p.status[1] = -1;
	t->session = pid;
	if (let_go(&p, pid, t, more, e) < 0 || wait_for_exec(p.status[0], pid, q, e) < 0)
		return -1;
	*ret = (struct command){ pid, take_fd(p.in[1]), take_fd(p.out[0]), take_fd(p.err[0]) };
	return 0;
}

int command_start(const struct exec_request *q, struct tree *t, struct command *ret,
		  struct err *e)
{
	return command_start_with(q, t, &(struct command_more){ 0 }, ret, e);
}

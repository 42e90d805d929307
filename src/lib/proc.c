#include "lib/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/str.h"

/* Where descriptors wait, out of the way of 0..N, while they are put in place. */
#define PARK_FROM 64
#define STAT_MAX  4096

/* Only async-signal-safe calls: this runs between fork() and execve(). */
static int place_fds(struct proc_spec *s)
{
	int want[3 + PROC_PASS_MAX] = { s->in, s->out, s->err };
	size_t count = 3 + s->pass_count;

	for (size_t i = 0; i < s->pass_count; i++)
		want[3 + i] = s->pass[i];
	for (size_t i = 0; i < count; i++) {
		int fd = want[i];

		if (fd < 0)
			fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		want[i] = fcntl(fd, F_DUPFD_CLOEXEC, PARK_FROM);
		if (want[i] < 0)
			return -1;
	}
	if (s->program > 0 && (s->program = fcntl(s->program, F_DUPFD_CLOEXEC, PARK_FROM)) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (dup2(want[i], (int)i) < 0)
			return -1;
	return (int)syscall(SYS_close_range, (unsigned)count, ~0U, CLOSE_RANGE_CLOEXEC);
}

static int execute(const struct proc_spec *s)
{
	char *const *argv = (char *const *)s->argv;
	char *const *env = s->env ? (char *const *)s->env : environ;

	return s->program > 0 ? fexecve(s->program, argv, env) : execvpe(argv[0], argv, env);
}

static no_return void child(struct proc_spec copy)
{
	struct proc_spec *s = &copy;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int n = 1; n < NSIG; n++)
		(void)sigaction(n, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);

	if (place_fds(s) < 0 || (s->cwd && chdir(s->cwd) < 0) ||
	    (s->prepare && s->prepare(s->arg) < 0))
		dprintf(STDERR_FILENO, "before %s: %s\n", s->argv[0], strerror(errno));
	else if (execute(s) < 0)
		dprintf(STDERR_FILENO, "%s: %s\n", s->argv[0], strerror(errno));
	_exit(127);
}

int proc_start(const struct proc_spec *spec, struct proc *ret, struct err *e)
{
	sigset_t all, before;
	pid_t pid;
	int pidfd;

	/* No handler of ours may run in the child before its own are reset. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		child(*spec);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_sys(e, errno, "start %s", spec->argv[0]);

	/* Ours and not yet waited for, so the pid cannot be another's. */
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		int why = errno;

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return err_sys(e, why, "watch %s", spec->argv[0]);
	}
	*ret = (struct proc){ .pid = pid, .pidfd = pidfd };
	return 0;
}

bool proc_keep_only(int *fds, int count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), first = STDERR_FILENO + 1;

	for (int i = 0; i < count; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first + count);
	for (int fd = STDIN_FILENO; fd < first; fd++)
		(void)dup2(null, fd);
	for (int i = 0; i < count; i++)
		if (dup2(fds[i], first + i) < 0)
			return false;
	return syscall(SYS_close_range, first + count, ~0U, 0) == 0;
}

static void forget(struct proc *p)
{
	close_fd(&p->pidfd);
	*p = (struct proc){ .pid = -1, .pidfd = -1 };
}

bool proc_ended(struct proc *p, int *status)
{
	if (p->pid <= 0 || waitpid(p->pid, status, WNOHANG) != p->pid)
		return false;
	forget(p);
	return true;
}

int proc_wait(struct proc *p)
{
	int status = 0;

	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	forget(p);
	return status;
}

void proc_kill(const struct proc *p, int signum)
{
	if (p->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, p->pidfd, signum, NULL, 0);
}

void proc_status_text(int status, char *out, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(out, size, "was killed by signal %d", WTERMSIG(status));
	else
		snprintf(out, size, "exited with %d", WEXITSTATUS(status));
}

uint64_t proc_files(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur;
}

void proc_raise_files(void)
{
	struct rlimit limit, more = { PROC_FILES_WANTED, PROC_FILES_WANTED };

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_max < PROC_FILES_WANTED && setrlimit(RLIMIT_NOFILE, &more) == 0)
		return; /* root may */
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* if not, we have what we have */
}

int proc_stat_field(pid_t pid, int field, uint64_t *ret, struct err *e)
{
	cleanup(buf_done) struct buf stat = buf_make(STAT_MAX);
	char path[64], number[24];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(AT_FDCWD, path, &stat, e) < 0)
		return -1;
	at = strrchr(buf_str(&stat), ')'); /* its name is the guest's to choose */
	for (int n = 2; at && n < field; n++)
		at = strchr(at + 1, ' ');
	if (!at || !str_copy_bytes(number, sizeof(number), at + 1, strcspn(at + 1, " ")) ||
	    str_u64(number, ret, e) < 0)
		return err_set(e, ERR_INVALID, "%s has no number in field %d", path, field);
	return 0;
}

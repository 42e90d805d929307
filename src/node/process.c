#include "node/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/proc.h"
#include "node/node.h"
#include "node/verbs.h"

#define LOG_FILE     "engine.log"
#define LOG_READ_MAX (64 * 1024)
#define FLAGS_FIELD  9   /* of /proc/PID/stat */
#define EXITING      0x4 /* PF_EXITING of the kernel */

void process_paths(const struct allocation *a, struct process_paths *p)
{
	snprintf(p->root, sizeof(p->root), "%s/engine/%s", a->node->settings.run_dir,
		 a->runtime->name);
	allocation_path(a, "bundle", p->bundle, sizeof(p->bundle));
	allocation_path(a, "pid", p->pidfile, sizeof(p->pidfile));
	allocation_path(a, LOG_FILE, p->log, sizeof(p->log));
	p->runtime = (struct runtime_paths){
		.root = p->root,
		.bundle = p->bundle,
		.pidfile = p->pidfile,
		.log = p->log,
		.name = a->name,
		.platform = a->node->settings.runsc_platform,
	};
}

int process_ended_early(const struct allocation *a, struct err *e)
{
	char said[PROCESS_SAID_SIZE];

	process_log_said(a, said);
	/* "No such process" would be true, and help no operator. */
	err_set(e, ERR_INTERNAL, "its init ended as soon as %s had started it%s%s",
		a->runtime->name, said[0] ? ": " : "", said);
	return err_fix(e, "Is the image for this machine, and its memory limit above a few MB? "
			  "'berth doctor' on the host checks the engine.");
}

/* On its way out a process leaves its cgroups first; its pidfd says so only at the end. */
static bool is_ending(int pid)
{
	uint64_t flags;
	struct err e;

	if (proc_stat_field(pid, FLAGS_FIELD, &flags, &e) < 0)
		return e.code != ERR_INVALID;
	return (flags & EXITING) != 0;
}

int process_find(struct allocation *a, struct err *e)
{
	cleanup(close_fd) int pidfd = -1;
	uint64_t pid;

	if (file_read_u64(a->dirfd, "pid", &pid, e) < 0)
		return -1;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0 && errno == ESRCH)
		return process_ended_early(a, e);
	if (pidfd < 0)
		return err_sys(e, errno, "process %d of %s", (int)pid, a->name);
	if (!cgroup_holds(&a->node->cgroups, a->name, (int)pid) && is_ending((int)pid))
		return process_ended_early(a, e);
	if (!cgroup_holds(&a->node->cgroups, a->name, (int)pid))
		return err_set(e, ERR_NOT_FOUND, "process %d is not of %s", (int)pid, a->name);
	a->pid = (pid_t)pid;
	a->pidfd = take_fd(pidfd);
	return 0;
}

bool process_is_over(const struct allocation *a)
{
	struct pollfd end = { .fd = a->pidfd, .events = POLLIN };

	return a->pidfd < 0 || poll(&end, 1, 0) > 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

void process_unwatch(struct allocation *a)
{
	if (!a->exit_poll)
		return;
	uv_poll_stop(a->exit_poll);
	uv_close((uv_handle_t *)take_ptr(a->exit_poll), on_poll_closed);
	close_fd(&a->pidfd);
	a->pidfd = -1;
	a->pid = 0;
}

static void on_exit_event(uv_poll_t *poll, int status, int events)
{
	struct allocation *a = poll->data;

	(void)status, (void)events;
	/* Only our child if this berth-node started it and it was not handed to another reaper. */
	(void)waitpid(a->pid, NULL, WNOHANG);
	process_unwatch(a);
	if (a->phase != PHASE_RUNNING)
		return; /* the verb that is at work on it finds out by itself */
	a->phase = PHASE_ENDED;
	allocation_cut_off(a);
	allocation_log(a, LOG_WARN, "sandbox processes ended", NULL);
	verb_tell_ended(a);
}

int process_watch(struct allocation *a, struct err *e)
{
	uv_poll_t *poll = xcalloc(1, sizeof(*poll));

	if (uv_poll_init(&a->node->loop, poll, a->pidfd) < 0) {
		free(poll);
		return err_set(e, ERR_INTERNAL, "watch the process of %s", a->name);
	}
	poll->data = a;
	a->exit_poll = poll;
	uv_poll_start(poll, UV_READABLE, on_exit_event);
	return 0;
}

int process_log_open(const struct allocation *a)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;

	return openat(a->dirfd, LOG_FILE, flags, 0600);
}

/* The last line that says something, with anything that is not plain text left out. */
static void last_line(struct buf *text, char *out, size_t size)
{
	size_t end = text->len, start, n = 0;

	while (end > 0 && text->data[end - 1] <= ' ')
		end--;
	for (start = end; start > 0 && text->data[start - 1] != '\n'; start--)
		;
	for (; start < end && n + 1 < size; start++)
		if (text->data[start] >= ' ' && text->data[start] < 0x7f)
			out[n++] = text->data[start];
	out[n] = '\0';
}

void process_log_said(const struct allocation *a, char said[PROCESS_SAID_SIZE])
{
	cleanup(buf_done) struct buf text = buf_make(LOG_READ_MAX);
	struct err ignored;

	said[0] = '\0';
	if (file_read(a->dirfd, LOG_FILE, &text, &ignored) == 0 && text.len > 0)
		last_line(&text, said, PROCESS_SAID_SIZE);
}

void process_log_error(const struct allocation *a, const char *what, int status, struct err *e)
{
	char said[PROCESS_SAID_SIZE], how[64];

	process_log_said(a, said);
	proc_status_text(status, how, sizeof(how));
	err_set(e, ERR_INTERNAL, "%s %s%s%s", what, how, said[0] ? ": " : "", said);
}

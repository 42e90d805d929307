#include "node/task.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/loop.h"

#define FORK_DEADLINE_MS 30000

static void on_handle_closed(uv_handle_t *handle)
{
	struct task *task = handle->data;

	if (--task->handles == 0)
		free(task);
}

static void task_close(struct task *task)
{
	uv_close((uv_handle_t *)&task->poll, on_handle_closed);
	uv_close((uv_handle_t *)&task->timer, on_handle_closed);
}

static void on_child_event(uv_poll_t *poll, int status, int events)
{
	struct task *task = poll->data;
	int pidfd = task->proc.pidfd;
	int ended;

	(void)status, (void)events;
	task->proc.pidfd = -1; /* libuv still polls it: closed below, after uv_poll_stop() */
	if (!proc_ended(&task->proc, &ended)) {
		task->proc.pidfd = pidfd;
		return;
	}
	uv_poll_stop(poll);
	close(pidfd);
	uv_timer_stop(&task->timer);
	task->on_done(task, ended);
	task_close(task);
}

static void on_deadline(uv_timer_t *timer)
{
	struct task *task = timer->data;

	task->timed_out = true;
	task_kill(task);
}

void task_kill(struct task *task)
{
	proc_kill(&task->proc, SIGKILL);
}

int task_start(uv_loop_t *loop, const struct proc_spec *spec, const struct task_end *end,
	       struct task **ret, struct err *e)
{
	struct task *task = xcalloc(1, sizeof(*task));

	if (proc_start(spec, &task->proc, e) < 0) {
		free(task);
		return -1;
	}
	task->on_done = end->on_done;
	task->data = end->data;
	task->handles = 2;
	uv_poll_init(loop, &task->poll, task->proc.pidfd);
	task->poll.data = task;
	uv_timer_init(loop, &task->timer);
	task->timer.data = task;
	uv_poll_start(&task->poll, UV_READABLE, on_child_event);
	uv_timer_start(&task->timer, on_deadline, end->deadline_ms, 0);
	if (ret)
		*ret = task;
	return 0;
}

struct forked {
	const struct task_work *work;
	pid_t parent;
};

/*
 * Runs in the child; there is no program behind it, so it never returns. It ends
 * with berth-node: the next one tidies up what was left, and must be alone at it.
 */
static int do_work(void *arg)
{
	const struct forked *f = arg;
	const struct task_work *w = f->work;
	struct err e = { 0 };
	int r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != f->parent)
		_exit(EXIT_FAILURE);
	r = w->run(w->data, &e);
	if (r < 0)
		dprintf(STDERR_FILENO, "%s\n", e.msg);
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

int task_fork(uv_loop_t *loop, const struct task_work *work, struct err *e)
{
	static const char *const name[] = { "berth-node work", NULL };
	struct forked child = { .work = work, .parent = getpid() };
	struct proc_spec spec = {
		.argv = name,
		.in = -1,
		.out = -1,
		.err = work->log,
		.prepare = do_work,
		.arg = &child,
	};
	struct task_end end = {
		.deadline_ms = work->deadline_ms ? work->deadline_ms : FORK_DEADLINE_MS,
		.on_done = work->on_done,
		.data = work->data,
	};

	return task_start(loop, &spec, &end, NULL, e);
}

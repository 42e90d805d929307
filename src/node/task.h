/*
 * A child process on the loop: started, watched by its pidfd, ended by a
 * deadline. Whatever takes longer than a few system calls (an engine, a
 * snapshot, a deletion) is a task, so that the loop never waits.
 */
#pragma once

#include <uv.h>

#include "lib/proc.h"

struct task {
	struct proc proc;
	uv_poll_t poll;   /* of the pidfd; data is the task */
	uv_timer_t timer; /* the deadline */
	bool timed_out;
	int handles; /* open ones; the task is freed when the last is closed */

	/* Called once, after its end was seen. `status` is as from waitpid(). */
	void (*on_done)(struct task *task, int status);
	void *data;
};

/* Who is told, and until when it may take. */
struct task_end {
	uint64_t deadline_ms; /* from now */
	void (*on_done)(struct task *task, int status);
	void *data;
};

must_check int task_start(uv_loop_t *loop, const struct proc_spec *spec, const struct task_end *end,
			  struct task **ret, struct err *e);

/*
 * The same without another program: `run` works in a fork of this process and
 * its result is the exit status (0 or 1). What it wants to say about a failure
 * goes to `log`, a descriptor that becomes its standard error.
 */
struct task_work {
	int (*run)(void *arg, struct err *e);
	int log;
	uint64_t deadline_ms; /* 0: half a minute */
	void (*on_done)(struct task *task, int status);
	void *data; /* of run() and of on_done() */
};
must_check int task_fork(uv_loop_t *loop, const struct task_work *work, struct err *e);

void task_kill(struct task *task);

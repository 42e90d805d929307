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

/* The caller fills spec; on_done and data say who is told. */
must_check int task_start(uv_loop_t *loop, const struct proc_spec *spec, uint64_t deadline_ms,
			  void (*on_done)(struct task *, int), void *data, struct task **ret,
			  struct err *e);

/*
 * The same without another program: `work` runs in a fork of this process and
 * its result is the exit status (0 or 1). What it wants to say about a failure
 * goes to `log`, a descriptor that becomes its standard error.
 */
must_check int task_fork(uv_loop_t *loop, int (*work)(void *arg, struct err *e), void *arg, int log,
			 void (*on_done)(struct task *, int), void *data, struct err *e);

void task_kill(struct task *task);

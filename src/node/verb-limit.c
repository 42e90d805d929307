/* limit: other limits for one that is there; of one that does not run, from its next start. */
#include <sys/wait.h>

#include "lib/crash.h"
#include "node/meter.h"
#include "node/node.h"
#include "node/process.h"
#include "node/task.h"
#include "node/verbs.h"

static void end(struct allocation *a, const struct err *why)
{
	static const struct node_nothing nothing;
	struct call *c = allocation_release(a);

	if (why)
		call_fail(c, why);
	else
		call_reply(c, &nothing, -1);
	if (a->waiting)
		verb_destroy(take_ptr(a->waiting));
}

/* Written down when it is done: an attempt that was cut short is made again. */
static void keep(struct allocation *a)
{
	struct err e;

	a->spec.limits = a->call->ask.limit.limits;
	end(a, allocation_save(a, &e) < 0 ? &e : NULL);
	crash_point("node.limits-kept");
}

static int change(void *arg, struct err *e)
{
	const struct allocation *a = arg;

	return meter_limit(a, &a->call->ask.limit.limits, e);
}

static void on_changed(struct task *task, int status)
{
	struct allocation *a = task->data;
	char said[PROCESS_SAID_SIZE];
	struct err e = { 0 };

	if (status == 0)
		return keep(a);
	process_log_said(a, said);
	if (WIFEXITED(status)) {
		err_set(&e, ERR_CONFLICT, "its limits stay as they were: %s", said);
		err_fix(&e, "Ask for a smaller change, or let it sleep: "
			    "what is changed then holds when it wakes.");
	} else { /* we do not know how far it came */
		process_log_error(a, "change its limits", status, &e);
		e.code = ERR_BUSY;
	}
	end(a, &e);
}

void verb_limit(struct call *c)
{
	struct task_work work = { .run = change, .on_done = on_changed };
	struct allocation *a;
	struct err e;

	if (allocation_target(c->node->all, &c->ask.target, &a, &e) < 0 ||
	    allocation_claim(a, c, &e) < 0)
		return call_fail(c, &e);
	if (a->phase != PHASE_RUNNING)
		return keep(a);
	work.data = a;
	work.log = process_log_open(a);
	if (task_fork(&c->node->loop, &work, &e) < 0)
		end(a, &e);
	close_fd(&work.log);
}

/* processes: what runs in a wrapper's cgroup, or in a sandbox whose engine hides its guest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "node/group.h"
#include "node/node.h"
#include "node/process-list.h"
#include "node/process.h"
#include "node/task.h"
#include "node/verbs.h"

#define LOOK_LIMIT_MS 5000 /* then it is told as far as it came */

struct looking {
	struct call *call;
	struct process_list *list; /* shared with the child */
	struct process_place at;
	struct process_paths paths;
	char name[ALLOCATION_NAME_SIZE];
};

static void looking_free(struct looking *l)
{
	if (l->list)
		munmap(l->list, sizeof(*l->list));
	free(l);
}

static int look(void *arg, struct err *e)
{
	const struct looking *l = arg;

	return process_list_read(&l->at, l->list, e);
}

/* One look at a time: a guest that makes them last keeps one child, and no more. */
static void let_next(const struct looking *l)
{
	struct allocation *a = allocation_find(l->call->node->all, l->call->ask.target.sandbox);

	if (a)
		a->listed = false;
}

static void on_looked(struct task *task, int status)
{
	struct looking *l = task->data;
	const struct process_list *list = l->list;
	struct node_processes end = { .total = list->total, .engine = l->at.engine->list != NULL };
	struct err e;

	let_next(l);
	if (list->count == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
		err_set(&e, ERR_BUSY, "the processes of %s cannot be seen%s",
			l->call->ask.target.sandbox, task->timed_out ? " in time" : "");
		call_fail(l->call, &e);
		return looking_free(l);
	}
	for (uint32_t i = 0; i < list->count && i < NODE_PROCESSES_MAX; i++)
		call_part(l->call, &list->items[i]);
	call_reply(l->call, &end, -1);
	looking_free(l);
}

static struct looking *prepare(struct call *c, const struct allocation *a)
{
	struct looking *l = xcalloc(1, sizeof(*l));

	l->call = c;
	memcpy(l->name, a->name, sizeof(l->name));
	process_paths(a, &l->paths);
	l->paths.runtime.name = l->name;
	l->at = (struct process_place){
		.host = &a->node->cgroups,
		.sandbox = l->name,
		.group = c->ask.process_ask.group,
		.engine = a->runtime,
		.paths = l->paths.runtime,
		.pid = a->pid,
	};
	return l;
}

static int begin(struct looking *l, struct allocation *a, struct err *e)
{
	struct task_work work = {
		.run = look,
		.log = -1,
		.deadline_ms = LOOK_LIMIT_MS,
		.on_done = on_looked,
		.data = l,
	};
	void *shared = mmap(NULL, sizeof(*l->list), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return err_sys(e, errno, "memory for a list of processes");
	l->list = shared;
	if (task_fork(&a->node->loop, &work, e) < 0)
		return -1;
	a->listed = true;
	return 0;
}

static void without_engine(struct call *c, const struct allocation *a)
{
	static const struct node_processes none = { .engine = 1 };
	struct err e;

	if (cgroup_procs(&c->node->cgroups, a->name) == PRESENCE_ABSENT)
		return call_reply(c, &none, -1);
	err_set(&e, ERR_BUSY, "%s is being stopped", a->spec.sandbox);
	call_fail(c, &e);
}

void verb_processes(struct call *c)
{
	struct allocation *a;
	struct looking *l;
	struct err e;

	if (group_name_check(c->ask.process_ask.group, &e) < 0 ||
	    allocation_target(c->node->all, &c->ask.target, &a, &e) < 0)
		return call_fail(c, &e);
	if (a->listed) {
		err_set(&e, ERR_BUSY, "the processes of %s are being looked at", a->spec.sandbox);
		return call_fail(c, &e);
	}
	if (a->pid == 0 && a->runtime->list) /* no engine that could be asked */
		return without_engine(c, a);
	l = prepare(c, a);
	if (begin(l, a, &e) == 0)
		return;
	looking_free(l);
	call_fail(c, &e);
}

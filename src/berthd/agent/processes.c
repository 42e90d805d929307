#include "berthd/agent/processes.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/journal/journal.h"
#include "berthd/runtime/berthd.h"
#include "core/process-tree.h"
#include "lib/errno-map.h"
#include "lib/str.h"
#include "store/sandbox.h"
#include "store/wrapper.h"

struct looking {
	struct job job;
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	bool all; /* any owner's */
	char sandbox[SANDBOX_ID_SIZE];
	char name[WRAPPER_NAME_SIZE];
	struct sandbox sb;
	uint32_t pid; /* of its first process inside; 0: not known */
	struct wrapper_processes list;
	wrapper_processes_fn *done;
	void *data;
};

static void end(struct looking *l, const struct err *why)
{
	l->done(l->data, &l->list, why);
	free(l);
}

static uint32_t first_pid(struct looking *l)
{
	struct journal_view v;
	struct journal *j;
	struct err ignored;

	if (journal_find(l->reactor->berthd->journals, l->sb.id, l->list.exec, &j, &ignored) < 0)
		return 0;
	journal_look(j, &v);
	journal_unref(j);
	return v.slot.pid;
}

static int read_records(struct job *job, struct store *s, struct err *e)
{
	struct looking *l = container_of(job, struct looking, job);
	struct wrapper w;

	if (store_sandbox_get(s, l->all ? NULL : l->owner, l->sandbox, &l->sb, e) < 0 ||
	    store_wrapper_get(s, l->sb.id, l->name, &w, e) < 0)
		return -1;
	if (w.lease.instance.generation == 0)
		return 0;
	wrapper_exec_id(l->list.exec, l->name, &w.lease.instance);
	l->pid = first_pid(l);
	return 0;
}

static void on_process(void *data, const union node_any *part)
{
	struct looking *l = data;

	if (l->list.count < NODE_PROCESSES_MAX)
		l->list.items[l->list.count++] = part->process;
}

/* The engine tells of all processes of the sandbox. */
static void keep_tree(struct looking *l)
{
	struct process_link links[NODE_PROCESSES_MAX];
	struct wrapper_processes *list = &l->list;
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		links[i] = (struct process_link){ .pid = list->items[i].pid,
						  .parent = list->items[i].parent };
	process_tree_mark(links, list->count, l->pid);
	for (size_t i = 0; i < list->count; i++)
		if (links[i].inside)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* After a restart of berthd: which of all is the wrapper's first is heard from init. */
static void end_not_reached(struct looking *l)
{
	struct err e;

	l->list.count = 0;
	err_set(&e, ERR_BUSY, "exec %s was not taken up again yet", l->list.exec);
	err_reason(&e, REASON_NOT_REACHED, 0);
	end(l, &e);
}

static void on_processes(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct looking *l = data;

	(void)fd;
	if (why) {
		l->list.count = 0; /* none, if the host has nothing of this sandbox */
		return end(l, why->code == ERR_NOT_FOUND ? NULL : why);
	}
	l->list.truncated = record->processes.total > l->list.count;
	l->list.by_engine = record->processes.engine;
	if (l->list.by_engine && l->pid == 0 && l->list.count > 0)
		return end_not_reached(l);
	if (l->list.by_engine)
		keep_tree(l);
	end(l, NULL);
}

static const struct node_call_events processes_events = { on_process, on_processes };

/* One that sleeps has no processes, and is not woken for that; of any other the host knows. */
static void on_records(struct job *job)
{
	struct looking *l = container_of(job, struct looking, job);
	struct node_process_ask ask = { .generation = l->sb.generation };

	if (job->failed)
		return end(l, &job->e);
	if (!l->list.exec[0] || l->sb.state == SANDBOX_ASLEEP)
		return end(l, NULL);
	memcpy(ask.request, l->request, sizeof(ask.request));
	memcpy(ask.sandbox, l->sb.id, sizeof(ask.sandbox));
	memcpy(ask.group, l->list.exec, sizeof(ask.group));
	node_call(&l->reactor->node, NODE_PROCESSES, &ask, -1, &processes_events, l);
}

void wrapper_processes_look(const struct caller *by, const char *sandbox, const char *name,
			    wrapper_processes_fn *done, void *data)
{
	struct looking *l = xcalloc(1, sizeof(*l));

	l->reactor = by->reactor;
	l->all = by->owner == NULL;
	l->done = done;
	l->data = data;
	(void)!str_copy(l->request, sizeof(l->request), by->request);
	(void)!str_copy(l->owner, sizeof(l->owner), by->owner ? by->owner : "");
	(void)!str_copy(l->sandbox, sizeof(l->sandbox), sandbox);
	(void)!str_copy(l->name, sizeof(l->name), name); /* too long: there is none of that name */
	job_submit(l->reactor, l->all ? NULL : l->owner, &l->job, read_records, on_records);
}

/*
 * stop: end the processes, keep the disk. destroy: end them, then remove
 * everything the allocation ever owned, look, and answer with what was seen.
 *
 * Every step is safe to repeat: a destroy that was cut short is begun again.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/proc.h"
#include "node/meter.h"
#include "node/node.h"
#include "node/process.h"
#include "node/task.h"
#include "node/verbs.h"
#include "node/veth.h"

#define EMPTY_LIMIT_MS 10000 /* for killed processes to be gone */
#define LOOK_MS        2

/* Waiting for the processes to be gone; then `clear`, again while it fails; then `next`. */
struct ending {
	struct allocation *a;
	uv_timer_t timer;
	uint64_t kill_at, give_up_at;
	int (*clear)(struct allocation *a, struct err *e); /* may be NULL */
	void (*next)(struct allocation *a);
};

void allocation_go_on(struct call *waited, const struct err *why)
{
	if (waited && why && waited->verb == NODE_CREATE)
		call_fail(waited, why);
	else if (waited)
		verb_begin(waited);
}

static void end_call(struct allocation *a, const struct err *why)
{
	struct call *c = allocation_release(a);
	struct node_observation o;

	if (why) {
		a->phase = PHASE_ENDED;
		log_event(LOG_WARN, "sandbox processes could not be ended", "sandbox",
			  a->spec.sandbox, "why", why->msg, NULL);
		call_fail(c, why);
	} else {
		allocation_observe(a->node, a->spec.sandbox, a->spec.generation, &o);
		call_reply(c, &o, -1);
	}
	allocation_go_on(take_ptr(a->waiting), why);
}

static void on_ending_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* True when no process is left and everything that stands by itself is removed. */
static bool is_clear(struct ending *w, struct err *e)
{
	struct allocation *a = w->a;
	enum presence group, process;

	cgroup_observe(&a->node->cgroups, a->name, &group, &process);
	if (process == PRESENCE_ABSENT)
		return !w->clear || w->clear(a, e) == 0;
	err_set(e, ERR_TIMEOUT, "processes of %s are %s after SIGKILL", a->name,
		process == PRESENCE_PRESENT ? "still there" : "in a cgroup that cannot be read");
	return false;
}

/*
 * An engine that was killed in the middle may have a child that has not joined
 * its cgroup yet and still writes: what cannot be removed now can be soon.
 */
static void on_look(uv_timer_t *timer)
{
	struct ending *w = timer->data;
	struct allocation *a = w->a;
	uint64_t now = uv_now(timer->loop);
	struct err e;
	bool clear = is_clear(w, &e);

	if (!clear && now < w->give_up_at) {
		if (now >= w->kill_at)
			cgroup_kill(&a->node->cgroups, a->name);
		uv_timer_start(timer, on_look, LOOK_MS, 0);
		return;
	}
	uv_close((uv_handle_t *)timer, on_ending_closed);
	if (clear)
		return w->next(a);
	end_call(a, &e);
}

static struct ending *ending_new(struct allocation *a, uint64_t grace_ms,
				 void (*next)(struct allocation *))
{
	struct ending *w = xcalloc(1, sizeof(*w));

	w->a = a;
	w->next = next;
	w->kill_at = uv_now(&a->node->loop) + grace_ms;
	w->give_up_at = w->kill_at + EMPTY_LIMIT_MS;
	uv_timer_init(&a->node->loop, &w->timer);
	w->timer.data = w;
	return w;
}

static void on_removed(struct task *task, int status)
{
	struct allocation *a = task->data;
	struct node_observation o;
	struct call *c, *again;
	struct err e = { 0 };
	bool dropped;

	if (status != 0) {
		process_log_error(a, "remove disk and link", status, &e);
		return end_call(a, &e);
	}
	crash_point("node.removal-seen");
	allocation_log(a, LOG_INFO, "sandbox destroyed", NULL);
	allocation_observe(a->node, a->spec.sandbox, a->spec.generation, &o);
	c = allocation_release(a);
	again = take_ptr(a->waiting); /* a call that came meanwhile gets its own answer */
	dropped = allocation_drop(a, &e) == 0;
	if (dropped)
		call_reply(c, &o, -1);
	else
		call_fail(c, &e);
	crash_point("node.destroy-answered");
	allocation_go_on(again, dropped ? NULL : &e);
}

/* In a child: removing a subvolume waits for the disk, removing a link for the kernel. */
static int remove_rest(void *arg, struct err *e)
{
	const struct allocation *a = arg;

	if (pool_subvolume_remove(a->node->pool.sandboxes, a->name, e) < 0)
		return -1;
	crash_point("node.disk-removed");
	return veth_remove(a->node->router.netns, a->slot, e);
}

/* Cgroups, and what the engine wrote down about it. */
int allocation_remove_traces(struct allocation *a, struct err *e)
{
	cleanup(strv_done) struct strv records = { 0 };
	char path[320];

	if (meter_close(a, e) < 0 || cgroup_remove(&a->node->cgroups, a->name, e) < 0)
		return -1;
	crash_point("node.cgroups-removed");
	a->runtime->records(&records, a->name);
	for (size_t i = 0; i < records.len; i++) {
		snprintf(path, sizeof(path), "%s/%s", a->runtime->name, records.items[i]);
		if (file_remove_tree(a->node->engine_fd, path, e) < 0)
			return -1;
	}
	crash_point("node.traces-removed");
	return 0;
}

static void start_removing(struct allocation *a)
{
	cleanup(close_fd) int log = process_log_open(a);
	struct task_work work = {
		.run = remove_rest,
		.log = log,
		.on_done = on_removed,
		.data = a,
	};
	struct err e;

	if (task_fork(&a->node->loop, &work, &e) < 0)
		end_call(a, &e);
}

static void destroy(struct allocation *a)
{
	struct ending *w;

	a->phase = PHASE_DESTROYING;
	allocation_cut_off(a);
	process_unwatch(a);
	cgroup_kill(&a->node->cgroups, a->name);
	crash_point("node.killed");
	w = ending_new(a, 0, start_removing);
	w->clear = allocation_remove_traces;
	on_look(&w->timer);
}

/* What is under way is cut short; it ends, and then this begins. */
static void wait_for_its_end(struct allocation *a, struct call *c)
{
	struct err e;

	if (a->waiting) {
		err_set(&e, ERR_BUSY, "%s is being destroyed already", a->spec.sandbox);
		return call_fail(c, &e);
	}
	a->waiting = c;
	if (a->task && a->phase != PHASE_DESTROYING)
		task_kill(a->task);
	cgroup_kill(&a->node->cgroups, a->name);
}

/*
 * After a power cut there may be a disk and no record. It is written down
 * first, like anything else, and then removed the usual way.
 */
static int find_or_record(struct call *c, struct allocation **ret, struct err *e)
{
	const struct node_target *t = &c->ask.target;
	struct node_create spec = { .generation = t->generation, .runtime = "crun" };
	char name[ALLOCATION_NAME_SIZE];
	enum presence link;
	uint32_t slot;

	if (allocation_find(c->node->all, t->sandbox))
		return allocation_target(c->node->all, t, ret, e);
	memcpy(spec.sandbox, t->sandbox, sizeof(spec.sandbox));
	if (allocation_name(t->sandbox, t->generation, name, e) < 0)
		return -1;
	link = veth_find(&c->node->router.links, name, &slot);
	if (link == PRESENCE_UNKNOWN) {
		err_set(e, ERR_BUSY, "whether %s has a link cannot be seen", name);
		return -1;
	}
	return allocation_make(c->node, &spec, link == PRESENCE_PRESENT ? &slot : NULL, ret, e);
}

void verb_destroy(struct call *c)
{
	struct allocation *a = NULL;
	struct err e;

	if (find_or_record(c, &a, &e) < 0)
		return call_fail(c, &e);
	if (a->call)
		return wait_for_its_end(a, c);
	a->call = c;
	destroy(a);
}

static void on_stopped(struct allocation *a)
{
	a->phase = PHASE_ENDED;
	allocation_cut_off(a);
	crash_point("node.stopped");
	allocation_log(a, LOG_INFO, "sandbox stopped", NULL);
	end_call(a, NULL);
}

void allocation_supersede(struct allocation *a, struct call *by, bool keep_disk)
{
	struct call *own;

	if (a->call)
		return wait_for_its_end(a, by);
	own = xcalloc(1, sizeof(*own)); /* has no link: its answer is dropped */
	own->node = a->node;
	own->verb = keep_disk ? NODE_STOP : NODE_DESTROY;
	own->fd = -1;
	own->ask.target = by->ask.target;
	own->ask.target.generation = a->spec.generation;
	a->call = own;
	a->waiting = by;
	allocation_log(a, LOG_WARN, "sandbox of an earlier generation ended", NULL);
	if (!keep_disk)
		return destroy(a);
	process_unwatch(a);
	on_look(&ending_new(a, 0, on_stopped)->timer);
}

/* A caller that saw an earlier life end does not mean this one. */
static int check_life(const struct allocation *a, const struct node_stop *ask, struct err *e)
{
	if (ask->life == 0 || ask->life == a->life)
		return 0;
	return err_set(e, ERR_CONFLICT, "%s was started again since", a->spec.sandbox);
}

void verb_stop(struct call *c)
{
	struct allocation *a;
	struct err e;
	bool ask;

	if (allocation_target(c->node->all, &c->ask.target, &a, &e) < 0 ||
	    check_life(a, &c->ask.stop, &e) < 0 || allocation_claim(a, c, &e) < 0)
		return call_fail(c, &e);
	ask = a->runtime->pid_is_init && a->pidfd >= 0;
	if (ask)
		proc_kill(&(struct proc){ .pid = a->pid, .pidfd = a->pidfd }, SIGTERM);
	process_unwatch(a);
	on_look(&ending_new(a, ask ? c->ask.stop.grace_ms : 0, on_stopped)->timer);
}

/* group: what the host sees of a wrapper, and its last word to it. See node/group.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/group.h"
#include "node/node.h"
#include "node/runtime.h"
#include "node/verbs.h"

#define KILL_AGAIN_MS 5    /* a process that was killed is not gone at once */
#define KILL_LIMIT_MS 2000 /* then it is told as still there */

/* The call may outlive its allocation: it goes on by name. */
struct killing {
	struct call *call;
	uv_timer_t timer;
	uint64_t until;
	char sandbox[ALLOCATION_NAME_SIZE];
	struct node_group_seen seen;
};

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_kill(uv_timer_t *timer)
{
	struct killing *k = timer->data;
	const struct cgroup_host *h = &k->call->node->cgroups;

	k->seen.process = group_observe(h, k->sandbox, k->seen.name);
	if (k->seen.process == PRESENCE_PRESENT && uv_now(timer->loop) < k->until) {
		group_kill(h, k->sandbox, k->seen.name);
		return;
	}
	call_reply(k->call, &k->seen, -1);
	uv_close((uv_handle_t *)timer, on_closed);
}

static void op_kill(struct call *c, const struct allocation *a)
{
	struct killing *k = xcalloc(1, sizeof(*k));
	uv_loop_t *loop = &c->node->loop;

	k->call = c;
	k->until = uv_now(loop) + KILL_LIMIT_MS;
	memcpy(k->sandbox, a->name, sizeof(k->sandbox));
	memcpy(k->seen.name, c->ask.group.name, sizeof(k->seen.name));
	uv_timer_init(loop, &k->timer);
	k->timer.data = k;
	uv_timer_start(&k->timer, on_kill, 0, KILL_AGAIN_MS);
}

static void tell_one(void *arg, const char *name, enum presence process)
{
	struct node_group_seen seen = { .process = process };

	snprintf(seen.name, sizeof(seen.name), "%s", name);
	call_part(arg, &seen);
}

static void op_look(struct call *c, const struct allocation *a)
{
	static const struct node_group_seen end = { .process = PRESENCE_ABSENT };
	struct err e;

	if (group_each(&c->node->cgroups, a->name, tell_one, c, &e) < 0)
		return call_fail(c, &e);
	call_reply(c, &end, -1);
}

static void op_enter(struct call *c, const struct allocation *a)
{
	const struct node_group *ask = &c->ask.group;
	struct node_group_seen seen = { .process = PRESENCE_PRESENT };
	struct err e;

	if (group_enter(&c->node->cgroups, a->name, ask->name, ask->pid, &e) < 0)
		return call_fail(c, &e);
	memcpy(seen.name, ask->name, sizeof(seen.name));
	call_reply(c, &seen, -1);
}

static void op_remove(struct call *c, const struct allocation *a)
{
	static const struct node_group_seen done = { .process = PRESENCE_ABSENT };
	struct err e;

	if (group_remove(&c->node->cgroups, a->name, c->ask.group.name, &e) < 0)
		return call_fail(c, &e);
	call_reply(c, &done, -1);
}

/* clang-format off */
static const struct {
	void (*run)(struct call *c, const struct allocation *a);
	bool named;
} ops[GROUP_OP_COUNT] = {
	[GROUP_LOOK]	= { op_look,	false },
	[GROUP_ENTER]	= { op_enter,	true },
	[GROUP_KILL]	= { op_kill,	true },
	[GROUP_REMOVE]	= { op_remove,	true },
};
/* clang-format on */

void verb_group(struct call *c)
{
	const struct node_group *ask = &c->ask.group;
	struct allocation *a;
	struct err e;

	if (ask->op >= GROUP_OP_COUNT) {
		err_set(&e, ERR_INVALID, "group: there is no operation %u", ask->op);
		return call_fail(c, &e);
	}
	if ((ops[ask->op].named && group_name_check(ask->name, &e) < 0) ||
	    allocation_target(c->node->all, &c->ask.target, &a, &e) < 0)
		return call_fail(c, &e);
	if (!a->runtime->shows_guest) {
		err_set(&e, ERR_UNSUPPORTED, "with %s the host does not see a guest's processes",
			a->runtime->name);
		return call_fail(c, &e);
	}
	ops[ask->op].run(c, a);
}

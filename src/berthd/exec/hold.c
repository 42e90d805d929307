#include "berthd/exec/hold.h"

#include <string.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/exec/usage.h"
#include "berthd/runtime/berthd.h"
#include "berthd/runtime/reactor.h"
#include "lib/crash.h"

static void on_entered(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct exec *x = data;

	(void)record, (void)fd;
	if (exec_came_back(x) || x->phase != EXEC_HELD)
		return; /* the connection it was held on is gone: init has killed it */
	if (why && why->code != ERR_UNSUPPORTED)
		return exec_refuse(x, why);
	crash_point("exec.group-entered");
	exec_move(x, EXEC_GOING);
	init_stream_send(x->stream, FRAME_GO, NULL, 0);
}

static const struct node_call_events entered_events = { .on_done = on_entered };

bool exec_may_be_held(const struct exec *x)
{
	return x->journal->head.ask.flags & EXEC_HOLD && x->phase == EXEC_STARTING;
}

void exec_held(struct exec *x, uint32_t pid)
{
	struct node_group ask = { .generation = x->generation, .op = GROUP_ENTER, .pid = pid };

	exec_move(x, EXEC_HELD);
	x->pending++;
	memcpy(ask.request, x->request, sizeof(ask.request));
	memcpy(ask.sandbox, x->sandbox, sizeof(x->sandbox));
	memcpy(ask.name, x->journal->head.ask.id, sizeof(x->journal->head.ask.id));
	node_call(&x->reactor->node, NODE_GROUP, &ask, -1, &entered_events, x);
}

/* ---- after its end ---- */

/* Once on a stream: an answer to each of its frames would be memory that a guest decides about. */
static void let_go(struct exec *x)
{
	if (!x->stream || x->phase != EXEC_RUNNING)
		return;
	x->let_go = true;
	init_stream_send(x->stream, FRAME_GO, NULL, 0);
}

static void on_looked(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct exec *x = data;

	(void)fd;
	if (exec_came_back(x) || exec_is_over(x))
		return; /* init does not wait for ever */
	x->looked = true;
	if (!why)
		x->memory = (enum presence)record->killer.memory;
	let_go(x);
}

static const struct node_call_events looked_events = { .on_done = on_looked };

void exec_killed(struct exec *x)
{
	struct node_killed ask = { .generation = x->generation, .pid = x->journal->slot.pid };

	if (x->looked)
		return let_go(x); /* said again, on another connection */
	if (x->looking)
		return;
	x->looking = true;
	x->pending++;
	memcpy(ask.request, x->request, sizeof(ask.request));
	memcpy(ask.sandbox, x->sandbox, sizeof(x->sandbox));
	node_call(&x->reactor->node, NODE_KILLED, &ask, -1, &looked_events, x);
}

/*
 * Two must say it of a process that ended by SIGKILL: the kernel's log that it was this one, and
 * the kernel's count that it was in this sandbox at all. Where the log is silent, the count is
 * shared out among those that ended so.
 */
void exec_name_killer(struct exec *x, const struct node_usage *now)
{
	struct sandbox_cache *cache = x->reactor->berthd->sandboxes;
	bool sigkill = x->exit.kind == EXEC_SIGNALLED && x->exit.signum == 9, own;
	uint64_t kills = now ? exec_usage_oom_kills(x, now) : 0;

	if (kills == 0 || (!sigkill && x->exit.kind != EXEC_LOST) ||
	    (sigkill && x->memory == PRESENCE_ABSENT))
		return;
	own = sandbox_cache_oom(cache, x->sandbox, kills, x->oom_told);
	if (own || (sigkill && x->memory == PRESENCE_PRESENT))
		x->exit.kind = EXEC_OOM;
}

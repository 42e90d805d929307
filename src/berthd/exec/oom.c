#include "berthd/exec/oom.h"

#include <string.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/exec/usage.h"
#include "berthd/runtime/berthd.h"

/* Once on a stream: an answer to each of its frames would be memory that a guest decides about. */
static void let_go(struct exec *x)
{
	if (!x->stream || x->phase != EXEC_RUNNING)
		return;
	x->let_go = true;
	init_stream_send(x->stream, FRAME_GO, NULL, 0);
}

static void on_answer(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct exec *x = data;

	(void)fd;
	if (exec_came_back(x) || exec_is_over(x))
		return; /* init does not wait for ever */
	x->oom = OOM_ANSWERED;
	if (!why)
		x->memory = (enum presence)record->killer.memory;
	let_go(x);
}

static const struct node_call_events answer_events = { .on_done = on_answer };

static void ask_node(struct exec *x, uint32_t pid, const struct node_call_events *events)
{
	struct node_killed ask = { .generation = x->generation,
				   .pid = pid,
				   .boot_ms = x->journal->head.started_boot_ms };

	x->oom = OOM_ASKED;
	x->pending++;
	memcpy(ask.request, x->request, sizeof(ask.request));
	memcpy(ask.sandbox, x->sandbox, sizeof(x->sandbox));
	node_call(&x->reactor->node, NODE_KILLED, &ask, -1, events, x);
}

void exec_oom_ask(struct exec *x)
{
	if (x->oom == OOM_ANSWERED)
		return let_go(x); /* said again, on another connection */
	if (x->oom == OOM_UNASKED)
		ask_node(x, x->journal->slot.pid, &answer_events);
}

bool exec_oom_ask_lost(struct exec *x, const struct node_call_events *events)
{
	if (x->exit.kind != EXEC_LOST || x->oom == OOM_ANSWERED || x->journal->head.ask.shell[0])
		return false;
	ask_node(x, 0, events);
	return true;
}

/*
 * Two must say it of a process that ended by SIGKILL, or whose end init did not live to tell: the
 * kernel's log that it was this one, or init, and the kernel's count that it was in this sandbox
 * at all. Where the log leaves it open, the count is shared out among those that ended so.
 */
void exec_oom_judge(struct exec *x, const struct node_usage *now)
{
	struct sandbox_cache *cache = x->reactor->berthd->sandboxes;
	bool sigkill = x->exit.kind == EXEC_SIGNALLED && x->exit.signum == 9, own;
	uint64_t kills = now ? exec_usage_oom_kills(x, now) : 0;

	if (kills == 0 || (!sigkill && x->exit.kind != EXEC_LOST) || x->memory == PRESENCE_ABSENT)
		return;
	own = sandbox_cache_oom(cache, x->sandbox, kills, x->oom_told);
	if (own || x->memory == PRESENCE_PRESENT)
		x->exit.kind = EXEC_OOM;
}

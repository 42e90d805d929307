#include "berthd/exec/hold.h"

#include <string.h>

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

#include "api/exec/errand.h"

#include <stdlib.h>

#include "api/exec/exec.h"
#include "lib/fault.h"

#define INPUT_MAX (1024UL * 1024) /* waiting for a command that does not read */

static void on_back(struct job *job)
{
	struct errand *e = container_of(job, struct errand, job);

	e->done(e, e->failed ? &e->e : NULL);
}

void errand_back(struct errand *e, const struct err *why)
{
	if (!e->done) {
		free(e);
		return;
	}
	e->failed = why;
	if (why)
		e->e = *why;
	e->job = (struct job){ .reactor = e->from, .done = on_back };
	reactor_post(e->from, &e->job);
}

static void not_taken(struct errand *e, const char *because)
{
	struct err why;

	err_set(&why, ERR_BUSY, "exec %s %s; nothing of this input was taken",
		e->journal->head.ask.id, because);
	err_fix(&why, "Send it again.");
	err_reason(&why, REASON_NOT_TAKEN, 0);
	errand_back(e, &why);
}

/* After a restart it may run and not be reached yet: its end is what its journal says. */
static void not_there(struct errand *e)
{
	struct journal_glance now;
	struct err why;

	journal_glance(e->journal, &now);
	if (!e->signum && now.state == JOURNAL_RUNNING)
		return not_taken(e, "is not reached yet");
	err_set(&why, ERR_CONFLICT, "exec %s has ended", e->journal->head.ask.id);
	errand_back(e, &why);
}

static void give_input(struct exec *x, struct errand *e)
{
	struct err why;

	if (!(x->journal->head.ask.flags & EXEC_STDIN)) {
		err_set(&why, ERR_CONFLICT, "exec %s has no standard input",
			x->journal->head.ask.id);
		err_fix(&why, "Begin it with stdin_open.");
		return errand_back(e, &why);
	}
	if (!x->started || exec_send_backlog(x) + e->input.len > INPUT_MAX)
		return not_taken(e, "does not read its standard input now");
	for (size_t at = 0; at < e->input.len; at += FRAME_PAYLOAD_MAX) {
		size_t n = e->input.len - at;

		exec_send(x, FRAME_STDIN, e->input.data + at,
			  n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX);
	}
	if (e->input_end)
		exec_send(x, FRAME_STDIN_END, NULL, 0);
	errand_back(e, NULL);
}

/* On the exec's own loop: while it is there, it stays there. */
static void on_there(struct job *job)
{
	struct errand *e = container_of(job, struct errand, job);
	struct exec *x;

	pthread_mutex_lock(&e->journal->lock);
	x = e->journal->exec;
	pthread_mutex_unlock(&e->journal->lock);
	if (x && x->exit.kind == EXEC_NONE)
		return e->signum ? exec_signal(x, e->signum, e) : give_input(x, e);
	not_there(e);
}

void errand_send(struct errand *e)
{
	struct reactor *there;

	pthread_mutex_lock(&e->journal->lock);
	there = e->journal->exec ? e->journal->reactor : NULL;
	pthread_mutex_unlock(&e->journal->lock);
	if (!there)
		return not_there(e);
	e->job = (struct job){ .reactor = there, .done = on_there };
	reactor_post(there, &e->job);
}

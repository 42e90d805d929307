#include "berthd/exec/errand.h"

#include <stdlib.h>

#include "berthd/exec/exec.h"
#include "lib/errno-map.h"

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

void errand_ended(const struct journal *j, struct err *ret)
{
	err_set(ret, ERR_CONFLICT, "exec %s has ended", j->head.ask.id);
}

/* After a restart it may run and not be reached yet: its end is what its journal says. */
void errand_absent(struct journal *j, struct err *ret)
{
	struct journal_glance now;

	journal_glance(j, &now);
	if (now.state != JOURNAL_RUNNING)
		return errand_ended(j, ret);
	err_set(ret, ERR_BUSY, "exec %s runs, but berthd has not reached it since its restart",
		j->head.ask.id);
	err_fix(ret, "Nothing was done to it: send this again.");
	err_reason(ret, REASON_NOT_REACHED, 0);
}

static void not_there(struct errand *e)
{
	struct err why;

	errand_absent(e->journal, &why);
	if (!e->signum && why.code == ERR_BUSY)
		return not_taken(e, "is not reached yet");
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
	if (x->input_ended && e->input.len > 0) {
		err_set(&why, ERR_CONFLICT, "the standard input of exec %s was ended before",
			x->journal->head.ask.id);
		return errand_back(e, &why);
	}
	if (x->phase != EXEC_RUNNING || exec_send_backlog(x) + e->input.len > INPUT_MAX)
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
	struct exec *x = e->journal->exec; /* changes on this loop only */
	struct err why;

	if (!x)
		return not_there(e);
	if (!exec_is_over(x))
		return e->signum ? exec_signal(x, e->signum, e) : give_input(x, e);
	errand_ended(e->journal, &why); /* and its record is being written */
	errand_back(e, &why);
}

void errand_send(struct errand *e)
{
	struct reactor *there = journal_loop(e->journal);

	if (!there)
		return not_there(e);
	e->job = (struct job){ .reactor = there, .done = on_there };
	reactor_post(there, &e->job);
}

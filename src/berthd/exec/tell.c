#include "berthd/exec/tell.h"

#include <stdlib.h>

#include "berthd/exec/errand.h"
#include "berthd/exec/exec.h"
#include "lib/loop.h"

#define INPUT_MARK  (512UL * 1024) /* waiting for a command that does not read */
#define WAITING_MAX 2048           /* pieces that wait for one exec */

struct telling {
	struct job job;
	struct reactor *from;
	struct journal *journal;
	enum frame_type type;
	struct buf payload;
	exec_tell_fn done;
	void *data;
	bool failed;
	struct err e;
	struct telling *next; /* in the exec's queue */
};

static void on_told(struct job *job)
{
	struct telling *t = container_of(job, struct telling, job);

	journal_unref(t->journal);
	buf_done(&t->payload);
	t->done(t->data, t->failed ? &t->e : NULL);
	free(t);
}

static void answer(struct telling *t, const struct err *why)
{
	t->failed = why;
	if (why)
		t->e = *why;
	t->job = (struct job){ .reactor = t->from, .done = on_told };
	reactor_post(t->from, &t->job);
}

static void answer_ended(struct telling *t)
{
	struct err why;

	errand_ended(t->journal, &why);
	answer(t, &why);
}

static void answer_absent(struct telling *t)
{
	struct err why;

	errand_absent(t->journal, &why);
	answer(t, &why);
}

static void answer_full(struct telling *t)
{
	struct err why;

	err_set(&why, ERR_BUSY, "exec %s does not read what it was sent before",
		t->journal->head.ask.id);
	err_fix(&why, "Send it again, later.");
	answer(t, &why);
}

/* ---- on the exec's loop ---- */

static bool must_wait(const struct telling *t, const struct exec *x)
{
	if (x->phase != EXEC_RUNNING)
		return t->type != FRAME_SIGNAL; /* that one is remembered */
	return t->type == FRAME_STDIN && exec_send_backlog(x) > INPUT_MARK;
}

static void deliver(struct telling *t, struct exec *x)
{
	uint32_t signum = 0;

	for (size_t i = 0; t->type == FRAME_SIGNAL && i < t->payload.len; i++)
		signum = signum << 8 | (uint8_t)t->payload.data[i];
	if (t->type == FRAME_SIGNAL)
		exec_signal(x, signum, NULL);
	else
		exec_send(x, t->type, t->payload.data, t->payload.len);
	answer(t, NULL);
}

void tellings_look(struct exec *x)
{
	struct telling **at = &x->tellings;

	while (*at) {
		struct telling *t = *at;

		if (!exec_is_over(x) && must_wait(t, x)) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		x->telling_count--;
		if (exec_is_over(x))
			answer_ended(t);
		else
			deliver(t, x);
	}
	if (!exec_is_over(x) && x->client && x->client->events->room)
		x->client->events->room(x->client);
}

static void on_there(struct job *job)
{
	struct telling *t = container_of(job, struct telling, job), **last;
	struct exec *x = t->journal->exec; /* changes on this loop only */

	if (!x)
		return answer_absent(t);
	if (exec_is_over(x))
		return answer_ended(t);
	if (!must_wait(t, x))
		return deliver(t, x);
	if (x->telling_count == WAITING_MAX)
		return answer_full(t);
	for (last = &x->tellings; *last; last = &(*last)->next)
		;
	t->next = NULL;
	*last = t;
	x->telling_count++;
}

struct drop {
	struct job job;
	struct reactor *from;
	struct journal *journal;
	void *data;
};

/* What was told before is here before: it waits, or it was answered. */
static void on_drop(struct job *job)
{
	cleanup(free_ptr) struct drop *d = container_of(job, struct drop, job);
	struct exec *x = d->journal->exec;
	struct telling **at = x ? &x->tellings : NULL;

	while (at && *at) {
		struct telling *t = *at;

		if (t->from != d->from || t->data != d->data) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		x->telling_count--;
		answer_full(t);
	}
	journal_unref(d->journal);
}

/* ---- on the loop it comes from ---- */

void exec_tell(struct reactor *from, struct journal *j, enum frame_type type,
	       const struct buf *payload, exec_tell_fn done, void *data)
{
	struct telling *t = xcalloc(1, sizeof(*t));
	struct reactor *to = journal_loop(j);

	t->from = from;
	t->journal = journal_ref(j);
	t->type = type;
	t->payload = buf_make(FRAME_PAYLOAD_MAX + 1);
	buf_add(&t->payload, payload->data, payload->len);
	t->done = done;
	t->data = data;
	if (!to)
		return answer_absent(t);
	t->job = (struct job){ .reactor = to, .done = on_there };
	reactor_post(to, &t->job);
}

void exec_tell_drop(struct reactor *from, struct journal *j, void *data)
{
	struct reactor *to = journal_loop(j);
	struct drop *d;

	if (!to)
		return; /* its end answered what waited */
	d = xcalloc(1, sizeof(*d));
	*d = (struct drop){ .from = from, .journal = journal_ref(j), .data = data };
	d->job = (struct job){ .reactor = to, .done = on_drop };
	reactor_post(to, &d->job);
}

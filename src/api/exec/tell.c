#include "api/exec/tell.h"

#include <stdlib.h>

#include "api/exec/exec.h"
#include "lib/loop.h"

#define INPUT_MARK (512UL * 1024) /* waiting for a command that does not read */
#define LOOK_MS    5              /* between looks whether it reads again */

struct telling {
	struct job job;
	struct reactor *from;
	struct journal *journal;
	enum frame_type type;
	struct buf payload;
	exec_tell_fn done;
	void *data;
	bool delivered;
	uv_timer_t again; /* on the exec's loop */
	bool timing;
};

static void on_told(struct job *job)
{
	struct telling *t = container_of(job, struct telling, job);

	journal_unref(t->journal);
	buf_done(&t->payload);
	t->done(t->data, t->delivered);
	free(t);
}

static void answer(struct telling *t)
{
	t->job = (struct job){ .reactor = t->from, .done = on_told };
	reactor_post(t->from, &t->job);
}

static void on_timer_closed(uv_handle_t *handle)
{
	answer(handle->data);
}

static void finish(struct telling *t, bool delivered)
{
	t->delivered = delivered;
	if (t->timing)
		uv_close((uv_handle_t *)&t->again, on_timer_closed);
	else
		answer(t);
}

static bool must_wait(const struct telling *t, const struct exec *x)
{
	if (!x->started)
		return t->type != FRAME_SIGNAL; /* that one is remembered */
	return t->type == FRAME_STDIN && exec_send_backlog(x) > INPUT_MARK;
}

static void try_it(struct telling *t);

static void on_again(uv_timer_t *timer)
{
	try_it(timer->data);
}

static void wait_for_it(struct telling *t, struct exec *x)
{
	if (!t->timing)
		uv_timer_init(&x->reactor->loop, &t->again);
	t->again.data = t;
	t->timing = true;
	uv_timer_start(&t->again, on_again, LOOK_MS, 0);
}

static void try_it(struct telling *t)
{
	struct exec *x = t->journal->exec; /* changes on this loop only */
	uint32_t signum = 0;

	if (!x || x->exit.kind != EXEC_NONE)
		return finish(t, false);
	if (must_wait(t, x))
		return wait_for_it(t, x);
	for (size_t i = 0; t->type == FRAME_SIGNAL && i < t->payload.len; i++)
		signum = signum << 8 | (uint8_t)t->payload.data[i];
	if (t->type == FRAME_SIGNAL)
		exec_signal(x, signum, NULL);
	else
		exec_send(x, t->type, t->payload.data, t->payload.len);
	finish(t, true);
}

static void on_there(struct job *job)
{
	try_it(container_of(job, struct telling, job));
}

void exec_tell(struct reactor *from, struct journal *j, enum frame_type type,
	       const struct buf *payload, exec_tell_fn done, void *data)
{
	struct telling *t = xcalloc(1, sizeof(*t));
	struct reactor *to;

	t->from = from;
	t->journal = journal_ref(j);
	t->type = type;
	t->payload = buf_make(FRAME_PAYLOAD_MAX + 1);
	buf_add(&t->payload, payload->data, payload->len);
	t->done = done;
	t->data = data;
	pthread_mutex_lock(&j->lock);
	to = j->exec ? j->reactor : NULL;
	pthread_mutex_unlock(&j->lock);
	if (!to)
		return answer(t);
	t->job = (struct job){ .reactor = to, .done = on_there };
	reactor_post(to, &t->job);
}

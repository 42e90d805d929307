#include "node/sync.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <sys/ioctl.h>

#include "lib/time.h"
#include "node/node.h"
#include "node/task.h"
#include "node/verbs.h"

#define SYNC_PAUSE_MS 2000 /* from the begin of one to that of the next */

static void begin_next(struct sync *s);

/* btrfs's own call: it does what syncfs() does, and wakes what frees deleted subvolumes. */
static int write_out(void *arg, struct err *e)
{
	const struct sync *s = arg;

	return ioctl(s->node->pool.dirfd, BTRFS_IOC_SYNC, NULL) < 0
		       ? err_sys(e, errno, "write the pool out")
		       : 0;
}

static void answer_all(struct sync *s, const struct err *why)
{
	struct node_synced done = { .at_ms = s->began_ms };

	while (s->served) {
		struct call *c = s->served;

		s->served = c->next_waiter;
		if (why)
			call_fail(c, why);
		else
			call_reply(c, &done, -1);
	}
}

static void on_written(struct task *task, int status)
{
	struct sync *s = task->data;
	struct err e;

	s->working = false;
	if (status != 0)
		err_set(&e, ERR_INTERNAL, "the pool could not be written out");
	answer_all(s, status == 0 ? NULL : &e);
	begin_next(s);
}

static void on_pause_over(uv_timer_t *timer)
{
	struct sync *s = timer->data;

	s->pausing = false;
	begin_next(s);
}

static void begin_next(struct sync *s)
{
	struct task_work work = { .run = write_out, .log = -1, .on_done = on_written, .data = s };
	struct err e;

	if (!s->asked || s->working || s->pausing)
		return;
	s->served = take_ptr(s->asked);
	s->working = s->pausing = true;
	s->began_ms = time_wall_ms();
	uv_timer_start(&s->pause, on_pause_over, SYNC_PAUSE_MS, 0);
	if (task_fork(&s->node->loop, &work, &e) == 0)
		return;
	s->working = false;
	answer_all(s, &e);
}

void verb_sync(struct call *c)
{
	struct sync *s = c->node->sync;

	c->next_waiter = s->asked;
	s->asked = c;
	begin_next(s);
}

void sync_open(struct node *n)
{
	n->sync->node = n;
	uv_timer_init(&n->loop, &n->sync->pause);
	n->sync->pause.data = n->sync;
}

void sync_close(struct node *n)
{
	if (n->sync->node)
		uv_close((uv_handle_t *)&n->sync->pause, NULL);
}

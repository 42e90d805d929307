/* A look at everything, and whether it counts as a sweep: only if berth-node told of it all. */
#include <unistd.h>

#include "berthd/control/reconcile.h"
#include "control-world.h"
#include "lib/time.h"
#include "test.h"

#define WAIT_MS 20000
#define SOON_MS 50

/* One sandbox that runs, and a look at it that has asked berth-node for its list. */
static struct asked begin_look(struct control_world *w)
{
	struct err e;

	if (raw(w->db.sql, "SELECT count(*) FROM sandbox") == 0) {
		add(w->db.s, ID("1"), "ann");
		CHECK_OK(try_move(w->db.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	}
	reconcile_begin(w->b->reconcile);
	reconcile_look(w->b->reconcile);
	return node_expect(w, NODE_INVENTORY);
}

static uint64_t finished_after(struct control_world *w)
{
	uint64_t end = time_mono_ms() + WAIT_MS;

	while (reconcile_looks(w->b->reconcile) && time_mono_ms() < end) {
		uv_run(&w->r->loop, UV_RUN_NOWAIT);
		usleep(500);
	}
	CHECK(!reconcile_looks(w->b->reconcile));
	return reconcile_sweeps(w->b->reconcile).finished;
}

TEST(a_sweep_whose_list_is_not_answered_does_not_count)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct asked list;

	w->deadlines[NODE_INVENTORY] = SOON_MS;
	(void)begin_look(w);
	node_does(w, NODE_OBSERVE);
	CHECK_INT(finished_after(w), 0);
	list = begin_look(w);
	node_answer(w, &list, &(union node_any){ 0 });
	node_does(w, NODE_OBSERVE);
	CHECK_INT(finished_after(w), 1);
}

TEST(a_sweep_that_saw_nothing_of_a_sandbox_does_not_count)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct asked list;

	w->deadlines[NODE_OBSERVE] = SOON_MS;
	list = begin_look(w);
	node_answer(w, &list, &(union node_any){ 0 });
	(void)node_expect(w, NODE_OBSERVE);
	CHECK_INT(finished_after(w), 0);
}

TEST(a_sandbox_that_berth_node_cannot_tell_of_fails_no_sweep)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct asked list = begin_look(w), one;

	node_answer(w, &list, &(union node_any){ 0 });
	one = node_expect(w, NODE_OBSERVE);
	node_refuse(w, &one, ERR_INTERNAL);
	CHECK_INT(finished_after(w), 1);
}

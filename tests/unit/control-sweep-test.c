/* A look at everything, and whether it counts as a sweep: only if berth-node told of it all. */
#include <unistd.h>

#include "berthd/control/reconcile.h"
#include "control-world.h"
#include "lib/time.h"
#include "proto/frame.h"
#include "test.h"

#define WAIT_MS      20000
#define SOON_MS      50
#define DUE_EVERY_MS 500 /* between two looks of reconcile's timer */

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

/* One sweep, whose one sandbox runs with an init of this version. */
static struct sandbox look_at_init(struct control_world *w, uint32_t protocol)
{
	union node_any seen = { .observation = { .ready = 1,
						 .process = PRESENCE_PRESENT,
						 .protocol = protocol } };
	uint64_t before = reconcile_sweeps(w->b->reconcile).finished;
	struct asked list = begin_look(w), one;

	node_answer(w, &list, &(union node_any){ 0 });
	one = node_expect(w, NODE_OBSERVE);
	node_answer(w, &one, &seen);
	CHECK_INT(finished_after(w), before + 1);
	return record_of(w, ID("1"));
}

TEST(an_init_of_another_version_is_written_down_and_told_once)
{
	const uint32_t older = FRAME_VERSION + (1 << 16), foreign = FRAME_VERSION + 1;
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct sandbox sb = look_at_init(w, 0); /* berth-node did not say it */

	CHECK_STR(guest_status_name(guest_compare(sb.guest.guest, sb.guest.host)), "unknown");
	sb = look_at_init(w, FRAME_VERSION);
	CHECK_INT(sb.guest.guest, FRAME_VERSION);
	CHECK_STR(guest_status_name(guest_compare(sb.guest.guest, sb.guest.host)), "current");
	CHECK(!strstr(history_of(w, ID("1")), "guest"));
	for (int i = 0; i < 2; i++) {
		sb = look_at_init(w, older);
		CHECK_INT(sb.guest.guest, older);
		CHECK_STR(guest_status_name(guest_compare(sb.guest.guest, sb.guest.host)),
			  "differs");
	}
	CHECK_INT(sb.state, SANDBOX_READY);
	CHECK_INT(raw(w->db.sql, "SELECT count(*) FROM sandbox_event WHERE event LIKE 'guest%'"),
		  1);
	CHECK(strstr(history_of(w, ID("1")), "guest_differs "));
	for (int i = 0; i < 2; i++)
		sb = look_at_init(w, foreign);
	CHECK_STR(guest_status_name(guest_compare(sb.guest.guest, sb.guest.host)), "incompatible");
	CHECK(strstr(history_of(w, ID("1")), "guest_differs guest_incompatible "));
	CHECK_INT(raw(w->db.sql, "SELECT count(*) FROM sandbox_event WHERE event LIKE 'guest%'"),
		  2);
}

/* Its host was upgraded: the init is what it was, and is compared with another version. */
TEST(an_init_that_was_current_is_told_when_its_host_is_not_the_same_any_more)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct sandbox sb;

	(void)look_at_init(w, FRAME_VERSION + (1 << 16));
	raw(w->db.sql, "WITH a AS (UPDATE sandbox SET guest_compared = guest_version RETURNING 1) "
		       "SELECT count(*) FROM a");
	sb = look_at_init(w, FRAME_VERSION + (1 << 16));
	CHECK_INT(sb.guest.host, FRAME_VERSION);
	CHECK(strstr(history_of(w, ID("1")), "guest_differs guest_differs "));
}

/* What berth-node lists is compared with records that stay as they are until its list is whole. */
TEST(a_look_that_is_wished_for_during_a_list_begins_after_it)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct asked list = begin_look(w);
	uint64_t end = time_mono_ms() + 3 * DUE_EVERY_MS;

	node_does(w, NODE_OBSERVE);
	reconcile_look(w->b->reconcile);
	while (time_mono_ms() < end)
		node_is_left_alone(w);
	node_answer(w, &list, &(union node_any){ 0 });
	(void)node_expect(w, NODE_INVENTORY);
}

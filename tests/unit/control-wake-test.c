/*
 * The sequence of a wake: write that it is waking, build around the disk that is there, start,
 * write that it is up. Its files stay, whatever fails.
 */
#include "berthd/control/wake.h"

#include "control-world.h"
#include "proto/frame.h"
#include "test.h"

static void on_woken(void *data, const struct sandbox *sb, const struct err *why)
{
	struct outcome *o = data;

	o->times++;
	o->failed = why;
	if (why)
		o->why = *why;
	else
		o->sb = *sb;
}

static void put_to_sleep(struct control_world *w)
{
	struct err e;

	add(w->db.s, ID("1"), "ann");
	CHECK_OK(try_move(w->db.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	CHECK_OK(try_move(w->db.s, ID("1"), SANDBOX_READY, SANDBOX_FALLING_ASLEEP, &e), &e);
	CHECK_OK(try_move(w->db.s, ID("1"), SANDBOX_FALLING_ASLEEP, SANDBOX_ASLEEP, &e), &e);
}

static void wake(struct control_world *w, struct outcome *o)
{
	struct wait_stable how = {
		.reactor = w->r,
		.request = "test",
		.sandbox = ID("1"),
		.done = on_woken,
		.data = o,
	};

	control_wake(&how, EV_USE);
}

TEST(a_wake_is_written_built_around_its_disk_started_and_then_ready)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct asked a;

	put_to_sleep(w);
	wake(w, &o);
	a = node_expect(w, NODE_CREATE);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_WAKING); /* before anything is made */
	CHECK_INT(a.record.create.keep_disk, 1);
	CHECK_INT(a.record.create.generation, 1);
	node_is_left_alone(w);
	node_answer(w, &a, &(union node_any){ 0 });
	a = node_expect(w, NODE_START);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_WAKING);
	node_answer(w, &a, &(union node_any){ 0 });
	wait_outcome(w, &o);
	CHECK(!o.failed);
	CHECK_INT(o.sb.state, SANDBOX_READY);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_READY);
	CHECK(strstr(history_of(w, ID("1")), "use up "));
	node_is_left_alone(w);
}

/* The version of its init is in the record when that says ready. */
static struct outcome wake_with_init(struct control_world *w, uint32_t protocol)
{
	union node_any seen = { .observation = { .protocol = protocol } };
	struct outcome o = { 0 };
	struct asked a;

	put_to_sleep(w);
	wake(w, &o);
	node_does(w, NODE_CREATE);
	a = node_expect(w, NODE_START);
	node_answer(w, &a, &seen);
	wait_outcome(w, &o);
	CHECK(!o.failed);
	CHECK_INT(o.sb.state, SANDBOX_READY);
	CHECK_INT(o.sb.guest.guest, protocol);
	CHECK_INT(o.sb.guest.host, FRAME_VERSION);
	return o;
}

TEST(a_wake_with_an_init_of_our_version_is_no_event_of_its_own)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();

	wake_with_init(w, FRAME_VERSION);
	CHECK(strstr(history_of(w, ID("1")), "use up "));
}

TEST(a_wake_with_an_init_of_another_minor_version_is_told_and_goes_on)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();

	wake_with_init(w, FRAME_VERSION + (1 << 16));
	CHECK(strstr(history_of(w, ID("1")), "use guest_differs up "));
}

/* Its processes are ended, and nothing is destroyed: its owner may wake it again. */
static void check_refused(enum node_verb step)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	put_to_sleep(w);
	wake(w, &o);
	check_step_refused(w, &o, step, NODE_STOP);
}

TEST(a_build_that_is_refused_fails_and_keeps_its_files)
{
	check_refused(NODE_CREATE);
}

TEST(a_start_that_is_refused_fails_and_keeps_its_files)
{
	check_refused(NODE_START);
}

TEST(without_its_record_nothing_is_built)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	put_to_sleep(w);
	refuse_state(w, "waking", "XX000");
	wake(w, &o);
	wait_outcome(w, &o);
	CHECK(o.failed);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_ASLEEP);
	node_is_left_alone(w);
}

TEST(two_that_want_it_wake_it_once)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome first = { 0 }, second = { 0 };
	struct asked a;

	put_to_sleep(w);
	wake(w, &first);
	wake(w, &second);
	a = node_expect(w, NODE_CREATE);
	node_is_left_alone(w);
	node_answer(w, &a, &(union node_any){ 0 });
	node_does(w, NODE_START);
	wait_outcome(w, &first);
	wait_outcome(w, &second);
	CHECK(!first.failed && !second.failed);
	node_is_left_alone(w);
}

TEST(one_that_is_ready_is_left_as_it_is)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct err e;

	add(w->db.s, ID("1"), "ann");
	CHECK_OK(try_move(w->db.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	wake(w, &o);
	wait_outcome(w, &o);
	CHECK(!o.failed);
	CHECK_INT(o.sb.state, SANDBOX_READY);
	node_is_left_alone(w);
}

TEST(one_that_is_deleted_meanwhile_is_left_to_its_deletion)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	put_to_sleep(w);
	wake(w, &o);
	check_start_deleted(w, &o, SANDBOX_WAKING);
	CHECK(o.failed);
	CHECK_INT(o.why.code, ERR_CONFLICT);
}

/* It is not known what runs: the record stays, and a later look or its deadline goes on. */
TEST(an_unanswered_start_stays_waking_and_its_late_answer_counts_for_nothing)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct transition *c;
	struct outcome o = { 0 };

	put_to_sleep(w);
	w->deadlines[NODE_START] = 50;
	c = transition_for(w, ID("1"), &o);
	transition_event(c, EV_USE, NULL, on_outcome);
	check_start_unanswered(w, &o, SANDBOX_WAKING);
}

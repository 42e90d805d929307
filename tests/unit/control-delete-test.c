/*
 * The sequence of a deletion: write the wish with its attempt, destroy, and erase only what was
 * observed gone. An answer counts for the attempt that the record names and for no other.
 */
#include "berthd/control/deletion.h"

#include "control-world.h"
#include "test.h"

/* What berth-node sees: the same of every part. */
static void observed(struct control_world *w, const struct asked *a, enum presence p)
{
	struct node_observation seen = {
		.sandbox = ID("1"),
		.generation = 1,
		.presence = p,
		.process = p,
		.cgroup = p,
		.disk = p,
		.runtime = p,
		.link = p,
		.observed_ms = 1,
	};

	node_answer(w, a, &seen);
}

/* One that is ready, and its owner wants it deleted. */
static struct asked ask_first(struct control_world *w, struct outcome *o)
{
	struct err e;

	add(w->db.s, ID("1"), "ann");
	CHECK_OK(try_move(w->db.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	deletion_ask(transition_for(w, ID("1"), o), on_outcome);
	return node_expect(w, NODE_DESTROY);
}

/* The record as it was read, with the time of its ladder come: the next attempt. */
static struct transition *go_on(struct control_world *w, struct outcome *o)
{
	struct transition *c = transition_for(w, ID("1"), o);

	c->sb = record_of(w, ID("1"));
	c->sb.stop.next_ms = c->sb.stop.deadline_ms = c->sb.read_ms;
	return c;
}

static uint64_t attempt_of(struct control_world *w)
{
	return record_of(w, ID("1")).stop.attempt;
}

static long tombstones(struct control_world *w)
{
	return raw(w->db.sql, "SELECT count(*) FROM tombstone");
}

TEST(a_deletion_is_written_carried_out_and_erased_when_all_was_seen_gone)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct asked a = ask_first(w, &o);
	struct sandbox sb = record_of(w, ID("1"));

	CHECK_INT(sb.state, SANDBOX_DELETING); /* before anything ends */
	CHECK_INT(sb.stop.state, STOP_STOPPING);
	CHECK_INT(sb.stop.attempts, 1);
	CHECK_INT(a.record.target.generation, 1);
	CHECK_INT(tombstones(w), 0);
	observed(w, &a, PRESENCE_ABSENT);
	wait_outcome(w, &o);
	CHECK(!o.failed);
	CHECK_INT(tombstones(w), 1);
	CHECK_INT(raw(w->db.sql, "SELECT count(*) FROM sandbox"), 0);
	CHECK(strstr(o.tomb.receipt, "\"disk\":\"absent\""));
	node_is_left_alone(w);
}

static void check_not_proven(struct control_world *w, struct outcome *o)
{
	struct sandbox sb;

	wait_outcome(w, o);
	CHECK(o->failed);
	CHECK_INT(o->why.code, ERR_BUSY);
	CHECK(strstr(o->why.msg, "not proven gone"));
	CHECK_INT(tombstones(w), 0);
	sb = record_of(w, ID("1"));
	CHECK_INT(sb.state, SANDBOX_DELETING);
	CHECK_INT(sb.stop.state, STOP_NEEDED); /* tried again, later */
	CHECK_INT(sb.stop.attempt, 0);
	CHECK(sb.stop.next_ms > sb.read_ms);
	node_is_left_alone(w);
}

static void check_seen(enum presence p)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct asked a = ask_first(w, &o);

	observed(w, &a, p);
	check_not_proven(w, &o);
}

TEST(what_is_still_there_is_not_erased)
{
	check_seen(PRESENCE_PRESENT);
}

TEST(what_is_not_known_is_not_erased)
{
	check_seen(PRESENCE_UNKNOWN);
}

TEST(a_refused_destroy_proves_nothing)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct asked a = ask_first(w, &o);

	node_refuse(w, &a, ERR_NOT_FOUND);
	check_not_proven(w, &o);
}

TEST(a_lost_berth_node_proves_nothing)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	(void)ask_first(w, &o);
	node_hang_up(w);
	check_not_proven(w, &o);
}

TEST(without_its_record_nothing_is_destroyed)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	add(w->db.s, ID("1"), "ann");
	refuse_state(w, "deleting", "55P03");
	deletion_ask(transition_for(w, ID("1"), &o), on_outcome);
	wait_outcome(w, &o);
	CHECK_INT(o.why.code, ERR_BUSY);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_CREATING);
	node_is_left_alone(w);
}

/* All is gone and the receipt is not written: the attempt stays the record's, and runs out. */
TEST(an_erase_that_fails_leaves_the_attempt_in_flight)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 }, again = { 0 }, next = { 0 };
	struct asked a = ask_first(w, &o);
	uint64_t attempt = attempt_of(w);

	raw(w->db.sql, "ALTER TABLE tombstone ADD CONSTRAINT no CHECK (false)");
	observed(w, &a, PRESENCE_ABSENT);
	wait_outcome(w, &o);
	CHECK(o.failed);
	CHECK_INT(attempt_of(w), attempt);
	node_is_left_alone(w);
	raw(w->db.sql, "ALTER TABLE tombstone DROP CONSTRAINT no");
	deletion_lost(go_on(w, &again), on_outcome); /* as berthd begins with it after a restart */
	wait_outcome(w, &again);
	deletion_go_on(go_on(w, &next), on_outcome);
	a = node_expect(w, NODE_DESTROY);
	observed(w, &a, PRESENCE_ABSENT);
	wait_outcome(w, &next);
	CHECK(!next.failed);
	CHECK_INT(tombstones(w), 1);
}

TEST(asked_twice_it_is_destroyed_once)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 }, twice = { 0 }, late = { 0 };
	struct asked a = ask_first(w, &o);

	deletion_ask(transition_for(w, ID("1"), &twice), on_outcome);
	wait_outcome(w, &twice);
	CHECK_INT(twice.why.code, ERR_BUSY);
	node_is_left_alone(w);
	CHECK_INT(record_of(w, ID("1")).stop.attempts, 1);
	observed(w, &a, PRESENCE_ABSENT);
	wait_outcome(w, &o);
	deletion_ask(transition_for(w, ID("1"), &late), on_outcome);
	wait_outcome(w, &late);
	CHECK(!late.failed);
	CHECK_STR(late.tomb.receipt, o.tomb.receipt); /* the first one, again */
	node_is_left_alone(w);
	CHECK_INT(tombstones(w), 1);
}

TEST(a_late_answer_of_an_earlier_attempt_erases_nothing)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome first = { 0 }, expired = { 0 }, second = { 0 };
	struct asked a = ask_first(w, &first), b;
	uint64_t attempt = attempt_of(w);

	deletion_go_on(go_on(w, &expired), on_outcome); /* its deadline has passed */
	wait_outcome(w, &expired);
	CHECK_INT(record_of(w, ID("1")).stop.state, STOP_NEEDED);
	deletion_go_on(go_on(w, &second), on_outcome);
	b = node_expect(w, NODE_DESTROY);
	CHECK(attempt_of(w) != attempt);
	CHECK_INT(record_of(w, ID("1")).stop.attempts, 2);
	observed(w, &a, PRESENCE_ABSENT);
	wait_outcome(w, &first);
	CHECK(first.failed);
	CHECK_INT(tombstones(w), 0);
	observed(w, &b, PRESENCE_ABSENT);
	wait_outcome(w, &second);
	CHECK(!second.failed);
	CHECK_INT(tombstones(w), 1);
}

/* One that is quarantined: only looked at, and destroyed when the look sees nothing. */
TEST(the_sixth_attempt_is_the_last_and_then_it_is_only_looked_at)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o[8] = { 0 };
	struct asked a = ask_first(w, &o[0]);

	observed(w, &a, PRESENCE_PRESENT);
	wait_outcome(w, &o[0]);
	for (int i = 1; i < 6; i++) {
		CHECK_INT(record_of(w, ID("1")).stop.state, STOP_NEEDED);
		deletion_go_on(go_on(w, &o[i]), on_outcome);
		a = node_expect(w, NODE_DESTROY);
		observed(w, &a, PRESENCE_PRESENT);
		wait_outcome(w, &o[i]);
	}
	CHECK_INT(record_of(w, ID("1")).stop.state, STOP_QUARANTINED);
	CHECK_INT(raw(w->db.sql, "SELECT count(*) FROM alert"), 1);
	deletion_go_on(go_on(w, &o[6]), on_outcome);
	a = node_expect(w, NODE_OBSERVE);
	observed(w, &a, PRESENCE_PRESENT);
	wait_outcome(w, &o[6]);
	CHECK(o[6].failed);
	node_is_left_alone(w);
	deletion_go_on(go_on(w, &o[7]), on_outcome);
	a = node_expect(w, NODE_OBSERVE);
	observed(w, &a, PRESENCE_ABSENT);
	a = node_expect(w, NODE_DESTROY); /* berth-node's own record */
	CHECK_INT(tombstones(w), 0);
	observed(w, &a, PRESENCE_ABSENT);
	wait_outcome(w, &o[7]);
	CHECK(!o[7].failed);
	CHECK_INT(tombstones(w), 1);
}

TEST(one_of_another_host_is_written_and_left_to_that_host)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	add(w->db.s, ID("1"), "ann");
	raw(w->db.sql, "UPDATE sandbox SET host = 'h2'");
	deletion_ask(transition_for(w, ID("1"), &o), on_outcome);
	wait_outcome(w, &o);
	CHECK_INT(o.why.code, ERR_BUSY);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_DELETING);
	node_is_left_alone(w);
}

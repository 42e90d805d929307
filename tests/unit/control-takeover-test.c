/*
 * The sequence of a takeover: see that a host's lease has stood still for long enough, take it,
 * give what it ran a new generation on hosts that live, and build what came here that way.
 */
#include "berthd/control/takeover.h"

#include <stdio.h>
#include <unistd.h>

#include "control-world.h"
#include "store/cell.h"
#include "store/host.h"
#include "test.h"

#define LONG  1    /* a lease of 30 s: it does not end during a test */
#define SHORT 1000 /* of 30 ms, with a margin of 10 */

static void claim(struct control_world *w, const char *id, unsigned divisor)
{
	struct host_claim c = {
		.id = id,
		.version = "1",
		.address = "10.0.0.1:7070",
		.boot_id = id,
		.divisor = divisor,
	};
	struct host h;
	struct err e;

	CHECK_OK(store_host_register(w->db.s, &c, &h, &e), &e);
	CHECK_OK(store_image_copy(w->db.s, D1, id, true, &e), &e);
}

/* Our own lease lasts; h2 ran one sandbox, which is ready, and its lease is over. */
static struct takeover *lose_h2(struct control_world *w)
{
	struct err e;

	claim(w, HOST, LONG);
	claim(w, "h2", SHORT);
	add(w->db.s, ID("1"), "ann");
	CHECK_OK(try_move(w->db.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	raw(w->db.sql, "UPDATE sandbox SET host = 'h2'");
	usleep(60 * 1000);
	return w->b->takeover = takeover_begin(w->r, SHORT);
}

static long lost(struct control_world *w, const char *host)
{
	char sql[96];

	snprintf(sql, sizeof(sql),
		 "SELECT count(*) FROM host WHERE id = '%s' AND lost_at IS NOT NULL", host);
	return raw(w->db.sql, sql);
}

/* Once to see the row, and once more when it has not moved for a whole lease. */
static void look_twice(struct control_world *w, struct takeover *t)
{
	takeover_look(t, 1);
	node_is_left_alone(w);
	CHECK_INT(lost(w, "h2"), 0);
	takeover_look(t, 1);
}

static void wait_state(struct control_world *w, enum sandbox_state s)
{
	for (int i = 0; i < 200 && record_of(w, ID("1")).state != s; i++)
		node_is_left_alone(w);
	CHECK_INT(record_of(w, ID("1")).state, s);
}

TEST(what_a_lost_host_ran_is_built_here_under_a_new_generation)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);
	struct asked a;
	struct sandbox sb;

	look_twice(w, t);
	a = node_expect(w, NODE_CREATE);
	sb = record_of(w, ID("1"));
	CHECK_INT(lost(w, "h2"), 1); /* before anything is built */
	CHECK_STR(sb.host, HOST);
	CHECK_INT(sb.generation, 2);
	CHECK_INT(sb.state, SANDBOX_CREATING);
	CHECK_INT(a.record.create.generation, 2);
	CHECK_INT(a.record.create.keep_disk, 0);
	takeover_look(t, 1); /* while it is at work: nothing is handed out twice */
	node_is_left_alone(w);
	node_answer(w, &a, &(union node_any){ 0 });
	a = node_expect(w, NODE_START);
	CHECK_INT(a.record.target.generation, 2);
	node_answer(w, &a, &(union node_any){ 0 });
	wait_state(w, SANDBOX_READY);
	takeover_look(t, 1);
	node_is_left_alone(w);
	CHECK_INT(record_of(w, ID("1")).generation, 2);
}

/* The worker reads the epoch: one that comes meanwhile is the next look's, if that is begun. */
TEST(a_look_that_is_not_begun_leaves_the_epoch_of_the_one_at_work)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);
	struct asked a;

	takeover_look(t, 1);
	node_is_left_alone(w);
	claim(w, "h3", SHORT);
	usleep(60 * 1000);
	takeover_look(t, 1);
	a = node_expect(w, NODE_CREATE);
	takeover_look(t, 99); /* under this epoch no host would be taken */
	usleep(60 * 1000);
	node_answer(w, &a, &(union node_any){ 0 });
	node_does(w, NODE_START);
	wait_state(w, SANDBOX_READY); /* and then it looks again, by itself */
	for (int i = 0; i < 500 && lost(w, "h3") == 0; i++)
		node_is_left_alone(w);
	CHECK_INT(lost(w, "h3"), 1);
}

TEST(a_lease_that_moves_between_two_looks_is_not_taken)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);

	takeover_look(t, 1);
	node_is_left_alone(w);
	raw(w->db.sql, "UPDATE host SET lease_until = lease_until + interval '1 ms' "
		       "WHERE id = 'h2'");
	takeover_look(t, 1); /* late all the same, but it has been seen alive */
	node_is_left_alone(w);
	CHECK_INT(lost(w, "h2"), 0);
	CHECK_STR(record_of(w, ID("1")).host, "h2");
}

TEST(a_host_whose_own_epoch_was_taken_takes_no_other)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);

	takeover_look(t, 1);
	node_is_left_alone(w);
	raw(w->db.sql, "UPDATE host SET epoch = 2 WHERE id = '" HOST "'");
	takeover_look(t, 1);
	node_is_left_alone(w);
	CHECK_INT(lost(w, "h2"), 0);
	CHECK_STR(record_of(w, ID("1")).host, "h2");
}

/* The host is lost, and what it ran waits for its record: the next look goes on from there. */
TEST(one_that_cannot_be_moved_is_moved_by_a_later_look)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);

	takeover_look(t, 1);
	node_is_left_alone(w);
	refuse_state(w, "creating", "55P03");
	takeover_look(t, 1);
	node_is_left_alone(w);
	CHECK_INT(lost(w, "h2"), 1);
	CHECK_INT(record_of(w, ID("1")).generation, 1);
	raw(w->db.sql, "DROP TRIGGER refuse ON sandbox");
	takeover_look(t, 1);
	node_does(w, NODE_CREATE);
	node_does(w, NODE_START);
	wait_state(w, SANDBOX_READY);
}

TEST(a_build_that_is_refused_fails_and_is_not_begun_again)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);
	struct asked a;

	look_twice(w, t);
	a = node_expect(w, NODE_CREATE);
	node_refuse(w, &a, ERR_INTERNAL);
	node_does(w, NODE_DESTROY);
	wait_state(w, SANDBOX_FAILED);
	takeover_look(t, 1);
	node_is_left_alone(w);
}

/* Its build is taken before its record is read: those beside it would wait for their deadline. */
TEST(one_whose_record_is_damaged_holds_up_no_other)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);
	struct asked a;

	for (int i = 2; i < 10; i++) {
		char id[SANDBOX_ID_SIZE];

		snprintf(id, sizeof(id), "sb_c1_%020d", i);
		add(w->db.s, id, "ann");
	}
	raw(w->db.sql, "UPDATE sandbox SET build_at = now(), identity_key = 'no key' || id "
		       "WHERE host = '" HOST "' AND id <> '" ID("9") "'");
	raw(w->db.sql, "UPDATE sandbox SET build_at = now() WHERE id = '" ID("9") "'");
	takeover_look(t, 1);
	a = node_expect(w, NODE_CREATE);
	CHECK_STR(a.record.create.sandbox, ID("9"));
	node_refuse(w, &a, ERR_INTERNAL);
	node_does(w, NODE_DESTROY);
}

/* A word of the generation that is lost says nothing of the one that took its place. */
TEST(a_late_event_of_the_generation_before_is_refused)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct takeover *t = lose_h2(w);
	struct sandbox before = record_of(w, ID("1"));
	struct outcome o = { 0 };
	struct transition *c;
	struct asked a;

	look_twice(w, t);
	node_does(w, NODE_CREATE);
	a = node_expect(w, NODE_START);
	c = transition_for(w, ID("1"), &o);
	c->sb = before;
	c->sb.version = 0; /* as one that knows no more than whose it was */
	transition_event(c, EV_ABSENT, NULL, on_outcome);
	wait_outcome(w, &o);
	CHECK(o.failed);
	CHECK_INT(o.why.code, ERR_CONFLICT);
	node_is_left_alone(w);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_CREATING);
	CHECK_INT(record_of(w, ID("1")).generation, 2);
	node_answer(w, &a, &(union node_any){ 0 });
	wait_state(w, SANDBOX_READY);
}

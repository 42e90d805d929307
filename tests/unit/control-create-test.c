/*
 * The sequence of a create: measure, write the record, build, start, write that it is up. What is
 * asked of berth-node in which order, what the record says meanwhile, and what a failure leaves.
 */
#include "berthd/control/create.h"

#include "berthd/control/reconcile.h"
#include "control-world.h"
#include "test.h"

static struct transition *new_one(struct control_world *w, struct outcome *o)
{
	struct transition *c = transition_for(w, ID("1"), o);

	c->spec = SANDBOX_SPEC_DEFAULT;
	snprintf(c->spec.image, sizeof(c->spec.image), "base");
	snprintf(c->sb.owner, sizeof(c->sb.owner), "ann");
	return c;
}

/* The request came with an Idempotency-Key: its client asks again. */
static void give_key(struct transition *c)
{
	snprintf(c->use.owner, sizeof(c->use.owner), "ann");
	snprintf(c->use.key, sizeof(c->use.key), "k1");
	snprintf(c->use.request, sizeof(c->use.request), "POST /v1/sandboxes");
	memset(c->use.body_hash, 'a', sizeof(c->use.body_hash) - 1);
}

static void measured(struct control_world *w)
{
	struct asked a = node_expect(w, NODE_CAPACITY);
	struct node_capacity has = {
		.version = 1,
		.cpus = 2,
		.memory_total = 16ULL << 30,
		.memory_available = 16ULL << 30,
		.disk_total = 1ULL << 40,
		.disk_available = 1ULL << 40,
		.runtimes = "crun",
		.pids = 100000,
		.open_files = 100000,
	};

	node_answer(w, &a, &has);
}

TEST(a_create_is_written_built_started_and_then_ready)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct asked a;

	control_create(new_one(w, &o), on_outcome);
	CHECK_INT(raw(w->db.sql, "SELECT count(*) FROM sandbox"), 0);
	measured(w);
	a = node_expect(w, NODE_CREATE);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_CREATING); /* before anything is made */
	CHECK_STR(a.record.create.sandbox, ID("1"));
	CHECK_INT(a.record.create.generation, 1);
	CHECK_STR(a.record.create.image, D1);
	CHECK_STR(a.record.create.runtime, "crun");
	CHECK_INT(a.record.create.keep_disk, 0);
	node_is_left_alone(w); /* until it has answered */
	node_answer(w, &a, &(union node_any){ 0 });
	a = node_expect(w, NODE_START);
	CHECK_INT(a.record.target.generation, 1);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_CREATING);
	node_answer(w, &a, &(union node_any){ 0 });
	wait_outcome(w, &o);
	CHECK(!o.failed);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_READY);
	CHECK_STR(history_of(w, ID("1")), "create up ");
	node_is_left_alone(w);
	CHECK_INT(o.times, 1);
}

TEST(without_a_record_nothing_is_built)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	refuse_state(w, "creating", "57014");
	control_create(new_one(w, &o), on_outcome);
	measured(w);
	wait_outcome(w, &o);
	CHECK(o.failed);
	CHECK_INT(o.why.code, ERR_BUSY);
	node_is_left_alone(w);
	CHECK_INT(raw(w->db.sql, "SELECT count(*) FROM sandbox"), 0);
}

/* What is refused at either step: the record says so first, then what was made is destroyed. */
static void check_refused(enum node_verb step)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	control_create(new_one(w, &o), on_outcome);
	measured(w);
	check_step_refused(w, &o, step, NODE_DESTROY);
	CHECK(strstr(o.why.msg, "could not be started"));
	CHECK_STR(history_of(w, ID("1")), "create broken ");
}

TEST(a_build_that_is_refused_fails_and_is_destroyed)
{
	check_refused(NODE_CREATE);
}

TEST(a_start_that_is_refused_fails_and_is_destroyed)
{
	check_refused(NODE_START);
}

TEST(a_destroy_that_fails_too_is_not_told_in_its_place)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct asked a;

	control_create(new_one(w, &o), on_outcome);
	measured(w);
	a = node_expect(w, NODE_CREATE);
	node_refuse(w, &a, ERR_UNSUPPORTED);
	a = node_expect(w, NODE_DESTROY);
	node_refuse(w, &a, ERR_INTERNAL);
	wait_outcome(w, &o);
	CHECK_INT(o.why.code, ERR_UNSUPPORTED);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_FAILED);
	node_is_left_alone(w);
}

/* berth-node is still at an earlier call: it is asked to start it, and not to build it again. */
TEST(a_busy_berth_node_is_asked_to_start_it_a_little_later)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };
	struct asked a;

	control_create(new_one(w, &o), on_outcome);
	measured(w);
	a = node_expect(w, NODE_CREATE);
	node_refuse(w, &a, ERR_BUSY);
	for (int i = 0; i < 2; i++) {
		a = node_expect(w, NODE_START);
		node_refuse(w, &a, ERR_BUSY);
	}
	node_does(w, NODE_START);
	wait_outcome(w, &o);
	CHECK(!o.failed);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_READY);
	CHECK_STR(history_of(w, ID("1")), "create up ");
}

/* No answer says nothing of what was done: with a key its client comes back for it. */
TEST(an_unanswered_start_with_a_key_stays_creating_and_its_late_answer_counts_for_nothing)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct transition *c;
	struct outcome o = { 0 };

	w->deadlines[NODE_START] = 50;
	c = new_one(w, &o);
	give_key(c);
	control_create(c, on_outcome);
	measured(w);
	check_start_unanswered(w, &o, SANDBOX_CREATING);
}

TEST(an_unanswered_start_without_a_key_is_broken_and_destroyed)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	w->deadlines[NODE_START] = 50;
	control_create(new_one(w, &o), on_outcome);
	measured(w);
	node_does(w, NODE_CREATE);
	(void)node_expect(w, NODE_START);
	node_does(w, NODE_DESTROY);
	wait_outcome(w, &o);
	CHECK(o.failed);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_FAILED);
}

TEST(a_lost_berth_node_without_a_key_is_broken_and_destroyed_when_it_is_back)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	control_create(new_one(w, &o), on_outcome);
	measured(w);
	(void)node_expect(w, NODE_CREATE);
	node_hang_up(w);
	node_does(w, NODE_DESTROY);
	wait_outcome(w, &o);
	CHECK(o.failed);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_FAILED);
	node_is_left_alone(w);
}

/* It runs, and no record says so: nothing is undone, and everything is looked at again. */
TEST(up_that_cannot_be_written_stays_creating_and_is_looked_at_again)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	refuse_state(w, "ready", "55P03");
	control_create(new_one(w, &o), on_outcome);
	measured(w);
	node_does(w, NODE_CREATE);
	CHECK(!reconcile_looks(w->b->reconcile));
	node_does(w, NODE_START);
	wait_outcome(w, &o);
	CHECK(o.failed);
	CHECK_INT(o.why.code, ERR_BUSY);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_CREATING);
	CHECK(reconcile_looks(w->b->reconcile));
}

/* Its deletion ends what it started: the create itself does nothing more. */
TEST(one_that_is_deleted_meanwhile_is_left_to_its_deletion)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome o = { 0 };

	control_create(new_one(w, &o), on_outcome);
	measured(w);
	check_start_deleted(w, &o, SANDBOX_CREATING);
	CHECK_INT(o.sb.state, SANDBOX_DELETING);
}

TEST(a_key_that_was_used_makes_nothing)
{
	cleanup(control_world_done) struct control_world *w = control_world_make();
	struct outcome first = { 0 }, second = { 0 };
	struct transition *c = new_one(w, &first);

	give_key(c);
	control_create(c, on_outcome);
	measured(w);
	node_does(w, NODE_CREATE);
	node_does(w, NODE_START);
	wait_outcome(w, &first);
	c = new_one(w, &second);
	give_key(c);
	snprintf(c->sb.id, sizeof(c->sb.id), ID("2"));
	control_create(c, on_outcome); /* its host is measured already */
	wait_outcome(w, &second);
	CHECK_INT(second.why.code, ERR_CONFLICT);
	node_is_left_alone(w);
	CHECK_INT(raw(w->db.sql, "SELECT count(*) FROM sandbox"), 1);
}

#include "store/host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store-world.h"
#include "store/cell.h"
#include "test.h"

#define LONG  1    /* a lease of 30 s: it does not end during a test */
#define SHORT 1000 /* of 30 ms, with a margin of 10 */

static struct host_claim claim_of(const char *id, uint64_t epoch, unsigned divisor)
{
	return (struct host_claim){
		.id = id,
		.version = "1",
		.address = "10.0.0.1:7070",
		.boot_id = id,
		.epoch = epoch,
		.divisor = divisor,
	};
}

static struct host enlist(struct store *s, const char *id, unsigned divisor)
{
	struct host_claim c = claim_of(id, 0, divisor);
	struct host h = { 0 };
	struct err e;

	CHECK_OK(store_host_register(s, &c, &h, &e), &e);
	CHECK_OK(store_image_copy(s, D1, id, true, &e), &e);
	return h;
}

static int renew(struct store *s, const char *id, uint64_t epoch, struct host *ret)
{
	struct host_claim c = claim_of(id, epoch, LONG);
	struct err e;
	int n = store_host_renew(s, &c, ret, &e);

	CHECK_OK(n, &e);
	return n;
}

static struct host look(struct store *s, const char *id)
{
	struct host h = { 0 };
	struct err e;

	CHECK_OK(store_host_get(s, id, &h, &e), &e);
	return h;
}

struct late {
	int count;
	struct host_late all[8];
};

static void on_late(const struct host_late *h, void *arg)
{
	struct late *late = arg;

	CHECK(late->count < 8);
	late->all[late->count++] = *h;
}

static struct late look_for_late(struct store *s, const char *by, unsigned divisor)
{
	struct host_taker t = { .id = by, .divisor = divisor };
	struct late late = { 0 };
	struct err e;

	CHECK_OK(store_hosts_late(s, &t, on_late, &late, &e), &e);
	return late;
}

static int take(struct store *s, const char *by, uint64_t epoch, unsigned divisor)
{
	struct host_taker t = { .id = by, .epoch = epoch, .divisor = divisor };
	struct late late = look_for_late(s, by, divisor);
	struct err e;
	int n = 0;

	for (int i = 0; i < late.count; i++) {
		int taken = store_host_take(s, &t, &late.all[i], &e);

		CHECK_OK(taken, &e);
		n += taken;
	}
	return n;
}

struct moves {
	int count;
	struct host_moved all[8];
};

static void on_moved(const struct host_moved *m, void *arg)
{
	struct moves *moves = arg;

	CHECK(moves->count < 8);
	moves->all[moves->count++] = *m;
}

static struct moves replace(struct store *s, const char *by, uint64_t epoch)
{
	struct host_taker t = { .id = by, .epoch = epoch, .divisor = LONG };
	struct host_replacement how = { .share = { .memory = 1 }, .limit = 5 };
	struct moves moves = { 0 };
	struct err e;

	CHECK_OK(store_hosts_replace(s, &t, &how, on_moved, &moves, &e), &e);
	return moves;
}

static void wait_over(void)
{
	usleep(60 * 1000);
}

TEST(a_host_has_the_engines_it_names_and_one_that_is_silent_may_have_any)
{
	struct host_capacity both = { .cpus = 2, .runtimes = "crun runsc" };
	struct host_capacity one = { .cpus = 2, .runtimes = "runsc" };
	struct host_capacity none = { .cpus = 2 }, silent = { 0 };

	CHECK(host_has_engine(&both, "crun") && host_has_engine(&both, "runsc"));
	CHECK(host_has_engine(&one, "runsc") && !host_has_engine(&one, "crun"));
	CHECK(!host_has_engine(&one, "run") && !host_has_engine(&one, "runs"));
	CHECK(!host_has_engine(&none, "crun"));
	CHECK(host_has_engine(&silent, "crun"));
}

TEST(a_host_says_how_many_files_may_be_open_there_and_is_passed_over_by_what_needs_more)
{
	cleanup(world_done) struct world w = world_make();
	struct host_capacity few = { .cpus = 2, .runtimes = "crun", .open_files = 1024 };
	struct host_claim claim = { .id = "h1",
				    .version = "1",
				    .boot_id = "b",
				    .capacity = &few,
				    .divisor = LONG };
	struct limits asked = limits_usual(), most;
	struct host h = { 0 };
	struct err e;

	CHECK_OK(store_host_register(w.s, &claim, &h, &e), &e);
	CHECK_INT(look(w.s, "h1").capacity.open_files, 1024);
	most = host_most(&h.capacity);
	asked.of[LIMIT_OPEN_FILES] = 1024;
	CHECK_OK(limits_fit(&asked, &most, &e), &e);
	asked.of[LIMIT_OPEN_FILES] = 1025;
	CHECK_ERR(limits_fit(&asked, &most, &e), &e, ERR_INVALID);
	most = host_most(&(struct host_capacity){ 0 }); /* it has not said, so it is asked */
	CHECK_OK(limits_fit(&asked, &most, &e), &e);
}

TEST(a_lease_is_renewed_under_its_epoch)
{
	cleanup(world_done) struct world w = world_make();
	struct host h = enlist(w.s, "h1", LONG), again = { 0 };

	CHECK_INT(h.epoch, 1);
	CHECK_INT(h.lease_until_ms - h.read_ms, 30000);
	CHECK_INT(host_state(&h, LONG), HOST_LIVE);
	CHECK_INT(renew(w.s, "h1", 1, &again), 1);
	CHECK(again.lease_until_ms >= h.lease_until_ms);
	CHECK_INT(again.epoch, 1);
	CHECK_INT(renew(w.s, "h1", 2, &again), 0); /* an epoch it does not hold */
	CHECK_INT(again.epoch, 1);
}

TEST(a_lease_that_is_over_goes_on_if_nobody_took_it)
{
	cleanup(world_done) struct world w = world_make();
	struct host h;

	enlist(w.s, "h1", SHORT);
	wait_over();
	h = look(w.s, "h1");
	CHECK_INT(host_state(&h, SHORT), HOST_FROZEN);
	CHECK_INT(renew(w.s, "h1", 1, &h), 1);
	CHECK_INT(host_state(&h, LONG), HOST_LIVE);
}

TEST(another_machine_of_the_same_name_waits)
{
	cleanup(world_done) struct world w = world_make();
	struct host_claim c = claim_of("h1", 0, LONG);
	struct host h;
	struct err e;

	enlist(w.s, "h1", LONG);
	c.boot_id = "other";
	CHECK_ERR(store_host_register(w.s, &c, &h, &e), &e, ERR_CONFLICT);
	CHECK_INT(look(w.s, "h1").epoch, 1);
	h = enlist(w.s, "h1", SHORT); /* the same machine may, with an empty house */
	CHECK_INT(h.epoch, 2);
	wait_over();
	c.divisor = SHORT;
	CHECK_OK(store_host_register(w.s, &c, &h, &e), &e);
	CHECK_INT(h.epoch, 3);
}

TEST(nobody_is_taken_over_before_lease_and_margin)
{
	cleanup(world_done) struct world w = world_make();
	struct host h;

	enlist(w.s, "h1", LONG);
	enlist(w.s, "h2", SHORT);
	CHECK_INT(take(w.s, "h1", 1, LONG), 0);
	wait_over();
	CHECK_INT(take(w.s, "h1", 1, LONG), 0);  /* over, but not for the margin of 10 s */
	CHECK_INT(take(w.s, "h1", 7, SHORT), 0); /* the taker's epoch is not its own */
	enlist(w.s, "h3", SHORT);
	wait_over();
	CHECK_INT(take(w.s, "h3", 1, SHORT), 0); /* its own lease is over */
	raw(w.sql, "DELETE FROM image_copy WHERE host = 'h3'");
	raw(w.sql, "DELETE FROM host WHERE id = 'h3'");
	CHECK_INT(take(w.s, "h1", 1, SHORT), 1);
	CHECK_INT(take(w.s, "h1", 1, SHORT), 0);
	h = look(w.s, "h2");
	CHECK_INT(h.epoch, 2);
	CHECK_STR(h.lost_to, "h1");
	CHECK_INT(host_state(&h, LONG), HOST_LOST);
	CHECK_INT(renew(w.s, "h2", 1, &h), 0);
	CHECK_INT(renew(w.s, "h2", 2, &h), 0); /* not by guessing either: it must be clear first */
	h = enlist(w.s, "h2", LONG);
	CHECK_INT(h.epoch, 3);
	CHECK_INT(host_state(&h, LONG), HOST_LIVE);
}

TEST(who_renewed_since_it_was_seen_is_not_taken)
{
	cleanup(world_done) struct world w = world_make();
	struct host_taker t = { .id = "h1", .epoch = 1, .divisor = SHORT };
	struct host_claim c = claim_of("h2", 1, SHORT);
	struct late late;
	struct host h;
	struct err e;

	enlist(w.s, "h1", LONG);
	enlist(w.s, "h2", SHORT);
	wait_over();
	late = look_for_late(w.s, "h1", SHORT);
	CHECK_INT(late.count, 1);
	CHECK_INT(store_host_renew(w.s, &c, &h, &e), 1);
	wait_over(); /* over again, but it is another row by now */
	CHECK_INT(store_host_take(w.s, &t, &late.all[0], &e), 0);
	CHECK_INT(take(w.s, "h1", 1, SHORT), 1);
}

TEST(a_host_without_a_lease_is_never_lost)
{
	cleanup(world_done) struct world w = world_make();
	struct host h;
	struct err e;

	CHECK_OK(store_host_put(w.s, "h1", "1", false, &e), &e);
	enlist(w.s, "h2", LONG);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 0);
	h = look(w.s, "h1");
	CHECK_INT(host_state(&h, LONG), HOST_LIVE);
}

TEST(leases_are_given_up_only_by_a_host_that_was_not_lost)
{
	cleanup(world_done) struct world w = world_make();
	struct err e;

	enlist(w.s, "h1", LONG);
	enlist(w.s, "h2", SHORT);
	wait_over();
	CHECK_INT(take(w.s, "h1", 1, SHORT), 1);
	CHECK_ERR(store_host_put(w.s, "h2", "1", false, &e), &e, ERR_CONFLICT);
	CHECK_OK(store_host_put(w.s, "h2", "1", true, &e), &e); /* it must be clear first */
	CHECK_OK(store_host_put(w.s, "h1", "1", false, &e), &e);
	CHECK_INT(look(w.s, "h1").lease_until_ms, 0);
	CHECK_OK(store_host_put(w.s, "h1", "1", true, &e), &e);
	CHECK(look(w.s, "h1").lease_until_ms > 0);
}

static void *take_it(void *arg)
{
	struct store *s = another();

	atomic_fetch_add((atomic_int *)arg, take(s, "h1", 1, SHORT));
	store_close(s);
	return NULL;
}

TEST(of_many_who_take_one_gets_it)
{
	cleanup(world_done) struct world w = world_make();

	enlist(w.s, "h1", LONG);
	for (int round = 0; round < 10; round++) {
		atomic_int taken = 0;

		enlist(w.s, "h2", SHORT);
		wait_over();
		in_threads(take_it, &taken);
		CHECK_INT(taken, 1);
		CHECK_INT(look(w.s, "h2").epoch, 2 * (round + 1));
	}
}

/* h1 is lost with one of each: creating, ready, failed, deleting. */
static void lose_h1(struct world *w)
{
	struct err e;

	enlist(w->s, "h1", SHORT);
	for (int i = 1; i <= 4; i++) {
		char id[SANDBOX_ID_SIZE];

		snprintf(id, sizeof(id), ID("%d"), i);
		add(w->s, id, "ann");
	}
	CHECK_OK(try_move(w->s, ID("2"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	CHECK_OK(try_move(w->s, ID("3"), SANDBOX_CREATING, SANDBOX_FAILED, &e), &e);
	CHECK_OK(try_move(w->s, ID("4"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	wait_over();
}

TEST(what_a_lost_host_ran_begins_anew_elsewhere)
{
	cleanup(world_done) struct world w = world_make();
	struct moves moves;
	struct sandbox sb;
	struct err e;

	lose_h1(&w);
	enlist(w.s, "h2", LONG);
	CHECK_INT(replace(w.s, "h2", 1).count, 0); /* not lost yet */
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	moves = replace(w.s, "h2", 1);
	CHECK_INT(moves.count, 2);
	for (int i = 0; i < 2; i++) {
		CHECK_STR(moves.all[i].host, "h2");
		CHECK_INT(moves.all[i].generation, 2);
	}
	CHECK_INT(replace(w.s, "h2", 1).count, 0);
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("2"), &sb, &e), &e);
	CHECK_INT(sb.state, SANDBOX_CREATING);
	CHECK_INT(sb.generation, 2);
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("4"), &sb, &e), &e);
	CHECK_INT(sb.state, SANDBOX_DELETING);
	CHECK_STR(sb.host, "h1");
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox_event WHERE event = 'replaced' "
			     "AND from_state = 'ready' AND to_state = 'creating'"),
		  1);
	/* A late word of the old generation changes nothing. */
	CHECK_ERR(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e, ERR_CONFLICT);
}

/* Its takeover was rolled back, again and again, by one row among all of them. */
TEST(a_record_that_cannot_be_read_holds_up_no_takeover)
{
	cleanup(world_done) struct world w = world_make();
	struct host_taker t = { .id = "h2", .epoch = 1, .divisor = LONG };
	struct host_replacement how = { .share = { .memory = 1 }, .limit = 5 };
	struct moves moves = { 0 };
	struct err e;

	lose_h1(&w);
	enlist(w.s, "h2", LONG);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	raw(w.sql, "ALTER TABLE sandbox DROP CONSTRAINT sandbox_runtime_check");
	raw(w.sql, "UPDATE sandbox SET runtime = repeat('x', 200) WHERE id = '" ID("1") "'");
	CHECK_INT(store_hosts_replace(w.s, &t, &how, on_moved, &moves, &e), 1);
	CHECK(strstr(e.msg, "runtime"));
	CHECK_INT(moves.count, 1);
	CHECK_STR(moves.all[0].sandbox, ID("2"));
	CHECK_INT(store_hosts_replace(w.s, &t, &how, on_moved, &moves, &e), 1);
	CHECK_INT(moves.count, 1);
}

static void set_memory(struct world *w, const char *host, long mb)
{
	char sql[100];

	snprintf(sql, sizeof(sql), "UPDATE host SET memory_mb = %ld WHERE id = '%s'", mb, host);
	raw(w->sql, sql);
}

TEST(those_who_arrive_are_built_once)
{
	cleanup(world_done) struct world w = world_make();
	struct moves moves = { 0 };
	struct err e;

	lose_h1(&w);
	enlist(w.s, "h2", LONG);
	enlist(w.s, "h3", LONG);
	set_memory(&w, "h2", 8192);
	set_memory(&w, "h3", 8192);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	CHECK_INT(replace(w.s, "h2", 1).count, 2);
	CHECK_OK(store_host_arrivals(w.s, "h2", on_moved, &moves, &e), &e);
	CHECK_INT(moves.count, 1); /* the less loaded gets the next */
	CHECK_OK(store_host_arrivals(w.s, "h2", on_moved, &moves, &e), &e);
	CHECK_INT(moves.count, 1);
	CHECK_OK(store_host_arrivals(w.s, "h3", on_moved, &moves, &e), &e);
	CHECK_INT(moves.count, 2);
}

TEST(who_is_drained_gets_nothing)
{
	cleanup(world_done) struct world w = world_make();
	struct host h;
	struct err e;

	lose_h1(&w);
	enlist(w.s, "h2", LONG);
	CHECK_OK(store_host_drain(w.s, "h2", true, &h, &e), &e);
	CHECK_INT(host_state(&h, LONG), HOST_DRAINING);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	CHECK_INT(replace(w.s, "h2", 1).count, 0);
	CHECK_OK(store_host_drain(w.s, "h2", false, &h, &e), &e);
	CHECK_INT(replace(w.s, "h2", 1).count, 2);
	CHECK_ERR(store_host_drain(w.s, "h9", true, &h, &e), &e, ERR_NOT_FOUND);
}

TEST(who_has_not_the_image_gets_nothing)
{
	cleanup(world_done) struct world w = world_make();
	struct moves moves;
	struct err e;

	lose_h1(&w);
	enlist(w.s, "h2", LONG);
	enlist(w.s, "h3", LONG);
	CHECK_OK(store_image_copy(w.s, D1, "h2", false, &e), &e);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	moves = replace(w.s, "h2", 1);
	CHECK_INT(moves.count, 2);
	CHECK_STR(moves.all[0].host, "h3");
	CHECK_STR(moves.all[1].host, "h3");
}

TEST(who_has_no_room_gets_nothing_and_who_has_gets_what_fits)
{
	cleanup(world_done) struct world w = world_make();
	struct moves moves;
	long each;

	lose_h1(&w);
	each = raw(w.sql, "SELECT memory_mb FROM sandbox LIMIT 1");
	enlist(w.s, "h2", LONG);
	enlist(w.s, "h3", LONG);
	set_memory(&w, "h2", each - 1);
	set_memory(&w, "h3", each);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	moves = replace(w.s, "h2", 1);
	CHECK_INT(moves.count, 1);
	CHECK_STR(moves.all[0].host, "h3");
	CHECK_INT(replace(w.s, "h2", 1).count, 0); /* the other one waits */
	set_memory(&w, "h2", each);
	moves = replace(w.s, "h2", 1);
	CHECK_INT(moves.count, 1);
	CHECK_STR(moves.all[0].host, "h2");
}

TEST(who_has_another_engine_gets_nothing)
{
	cleanup(world_done) struct world w = world_make();

	lose_h1(&w);
	enlist(w.s, "h2", LONG);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	raw(w.sql, "UPDATE host SET runtimes = 'crun2 xcrun' WHERE id = 'h2'");
	CHECK_INT(replace(w.s, "h2", 1).count, 0);
	raw(w.sql, "UPDATE host SET runtimes = 'runsc crun' WHERE id = 'h2'");
	CHECK_INT(replace(w.s, "h2", 1).count, 2);
}

/* What one lost host left and nobody takes keeps nobody else's waiting. */
TEST(of_two_lost_hosts_the_second_does_not_wait_for_the_first)
{
	cleanup(world_done) struct world w = world_make();
	int moved = 0;

	lose_h1(&w);
	enlist(w.s, "h3", SHORT);
	raw(w.sql, "UPDATE sandbox SET host = 'h3' WHERE state = 'ready'");
	raw(w.sql, "UPDATE sandbox SET memory_mb = 1000000 WHERE host = 'h1'");
	wait_over();
	enlist(w.s, "h2", LONG);
	set_memory(&w, "h2", 4096);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 2);
	for (int i = 0; i < 50 && moved == 0; i++)
		moved = replace(w.s, "h2", 1).count;
	CHECK_INT(moved, 1);
}

TEST(the_removal_of_a_host_ends_its_own_alerts)
{
	static const char open[] = "SELECT count(*) FROM alert WHERE ended_at IS NULL";
	cleanup(world_done) struct world w = world_make();
	struct host_removal r = { .id = "h1", .by = "root", .receipt = "{}", .divisor = LONG };
	struct host h;
	struct err e;

	lose_h1(&w);
	raw(w.sql, "INSERT INTO alert (kind, sandbox_id, subject, owner, host, message) VALUES "
		   "('pool_low', '', 'h1', '', 'h1', ''), ('pool_low', '', 'h2', '', 'h2', ''), "
		   "('wrapper_quarantined', '" ID("1") "', '', '', 'h1', '')");
	enlist(w.s, "h2", LONG);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	CHECK_INT(replace(w.s, "h2", 1).count, 2);
	CHECK_INT(raw(w.sql, open), 3);
	CHECK_OK(store_host_remove(w.s, &r, &h, &e), &e);
	CHECK_INT(raw(w.sql, open), 2); /* not the other's, and not of a sandbox that goes on */
}

TEST(a_host_is_removed_when_it_is_lost_and_empty)
{
	cleanup(world_done) struct world w = world_make();
	struct host_removal r = { .id = "h1", .by = "root", .receipt = "{}", .divisor = LONG };
	struct host h;
	struct tombstone t;
	struct err e;

	lose_h1(&w);
	enlist(w.s, "h2", LONG);
	CHECK_ERR(store_host_remove(w.s, &r, &h, &e), &e, ERR_CONFLICT);
	CHECK_INT(take(w.s, "h2", 1, SHORT), 1);
	CHECK_ERR(store_host_remove(w.s, &r, &h, &e), &e, ERR_BUSY);
	CHECK_INT(replace(w.s, "h2", 1).count, 2);
	CHECK_OK(store_host_remove(w.s, &r, &h, &e), &e);
	CHECK_INT(host_state(&h, LONG), HOST_GONE);
	CHECK_OK(store_tombstone_get(w.s, NULL, ID("3"), &t, &e), &e);
	CHECK_OK(store_tombstone_get(w.s, NULL, ID("4"), &t, &e), &e);
	CHECK_OK(store_host_remove(w.s, &r, &h, &e), &e); /* again: the same */
	CHECK_INT(renew(w.s, "h1", 1, &h), 0);
	CHECK(h.removed_ms > 0);
	CHECK_INT(look(w.s, "h2").sandboxes, 2);
	CHECK_INT(look(w.s, "h2").promised_memory_mb, 1024);
}

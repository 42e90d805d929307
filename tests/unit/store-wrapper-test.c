/* Leases of wrappers, in a real PostgreSQL. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store-world.h"
#include "store/wrapper.h"
#include "test.h"

#define DIVISOR 1

/* Apply it as of when it was read, and store it. */
static int step(struct store *s, struct wrapper *w, struct lease_input in, struct err *e)
{
	struct moment at = { .now_ms = w->read_ms, .divisor = DIVISOR };
	enum lease_action ignored;

	in.attempt = in.attempt ? in.attempt : w->lease.stop.attempt;
	if (in.event != LEASE_ALLOCATE)
		in.instance = w->lease.instance;
	if (lease_apply(&w->lease, &in, &at, &ignored, e) < 0)
		return -1;
	return store_wrapper_move(s, w, w, e);
}

static void same(const struct lease *a, const struct lease *b)
{
	CHECK_INT(a->state, b->state);
	CHECK_INT(a->stop.state, b->stop.state);
	CHECK_INT(a->reason, b->reason);
	CHECK_INT(a->session_wide, b->session_wide);
	CHECK(a->next_generation == b->next_generation && a->keep_warm_ms == b->keep_warm_ms);
	CHECK(a->instance.generation == b->instance.generation);
	CHECK_STR(a->instance.id, b->instance.id);
	CHECK(lease_deadline_ms(a) == lease_deadline_ms(b));
	CHECK(a->stop.attempt == b->stop.attempt && a->stop.attempts == b->stop.attempts);
	CHECK(a->stop.rechecks == b->stop.rechecks);
	CHECK(a->stop.requested_ms == b->stop.requested_ms);
	CHECK_STR(a->stop.last_error, b->stop.last_error);
}

static const struct wrapper_boot this_boot = { "h1", "11111111111111111111111111111111" };

TEST(a_lease_is_read_as_it_was_written_in_every_state)
{
	/* clang-format off */
	static const struct lease_input life[] = {
		{ .event = LEASE_ALLOCATE, .instance.id = "wi_a" },
		{ .event = LEASE_VERIFIED },
		{ .event = LEASE_ACCEPTED },
		{ .event = LEASE_SETTLED },
		{ .event = LEASE_REUSE },
		{ .event = LEASE_STOP, .reason = LEASE_USER_INTERRUPT, .session_wide = true },
		{ .event = LEASE_BEGIN, .attempt = 7 },
		{ .event = LEASE_EXHAUSTED, .text = "it is still there" },
		{ .event = LEASE_RECHECK, .attempt = 9 },
		{ .event = LEASE_ABSENT },
		{ .event = LEASE_ALLOCATE, .instance.id = "wi_b" },
	};
	/* clang-format on */
	cleanup(world_done) struct world w = world_make();
	struct wrapper now, read;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_OK(store_wrapper_open(w.s, ID("1"), "main", &now, &e), &e);
	CHECK_INT(now.lease.state, LEASE_NONE);
	for (size_t i = 0; i < array_len(life); i++) {
		struct lease decided = now.lease;
		struct lease_input in = life[i];
		struct moment at = { .now_ms = now.read_ms, .divisor = DIVISOR };
		enum lease_action ignored;

		in.attempt = in.attempt ? in.attempt : decided.stop.attempt;
		if (in.event != LEASE_ALLOCATE)
			in.instance = decided.instance;
		CHECK_OK(lease_apply(&decided, &in, &at, &ignored, &e), &e);
		CHECK_OK(step(w.s, &now, life[i], &e), &e);
		same(&now.lease, &decided);
		CHECK_OK(store_wrapper_get(w.s, ID("1"), "main", &read, &e), &e);
		same(&read.lease, &decided);
	}
	CHECK_INT((long long)now.lease.instance.generation, 2);
}

TEST(only_who_has_read_the_last_version_writes)
{
	cleanup(world_done) struct world w = world_make();
	struct lease_input launch = { .event = LEASE_ALLOCATE, .instance.id = "wi_a" };
	struct wrapper first, second;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_ERR(store_wrapper_get(w.s, ID("1"), "main", &first, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(store_wrapper_open(w.s, ID("1"), "main", &first, &e), &e);
	CHECK_OK(store_wrapper_open(w.s, ID("1"), "main", &second, &e), &e);
	CHECK_OK(step(w.s, &first, launch, &e), &e);
	CHECK_ERR(step(w.s, &second, launch, &e), &e, ERR_CONFLICT);
	CHECK_ERR(store_wrapper_open(w.s, ID("2"), "main", &second, &e), &e, ERR_LIMIT);
}

static void count(const struct wrapper *w, void *arg)
{
	struct wrapper *last = arg;

	last->version++;
	memcpy(last->name, w->name, sizeof(last->name));
}

TEST(a_lease_of_another_boot_of_this_host_is_due_at_the_start)
{
	/* clang-format off */
	static const struct {
		struct wrapper_boot began;
		int due;
	} rows[] = {
		{ { "h1", "22222222222222222222222222222222" }, 1 },
		{ { "h1", "11111111111111111111111111111111" }, 0 },
		{ { "h2", "22222222222222222222222222222222" }, 0 }, /* elsewhere */
		{ { "", "" }, 0 },
	};
	/* clang-format on */
	cleanup(world_done) struct world w = world_make();
	struct wrapper_due due = { .boot = &this_boot, .limit = 10, .stopping = true };
	struct wrapper now;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_OK(store_wrapper_open(w.s, ID("1"), "main", &now, &e), &e);
	for (size_t i = 0; i < array_len(rows); i++) {
		struct lease_input proven = { .event = LEASE_PROVEN };
		struct wrapper got = { 0 }, read;

		now.boot = rows[i].began;
		CHECK_OK(step(w.s, &now, (struct lease_input){ LEASE_ALLOCATE, { 0, "wi_a" } }, &e),
			 &e);
		CHECK_OK(store_wrapper_get(w.s, ID("1"), "main", &read, &e), &e);
		CHECK_STR(read.boot.host, rows[i].began.host);
		CHECK_STR(read.boot.boot_id, rows[i].began.boot_id);
		CHECK_INT(wrapper_boot_is_over(&read.boot, &this_boot), rows[i].due);
		CHECK_OK(store_wrappers_due(w.s, &due, count, &got, &e), &e);
		CHECK_INT((long long)got.version, rows[i].due);
		CHECK_OK(step(w.s, &now, proven, &e), &e);
		CHECK_INT(now.lease.state, LEASE_NONE);
	}
}

TEST(what_is_due_is_of_this_host_and_keeps_its_deadline)
{
	cleanup(world_done) struct world w = world_make();
	struct wrapper_due due = { .boot = &this_boot, .limit = 10 };
	struct wrapper now, got = { 0 };
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_OK(store_wrapper_open(w.s, ID("1"), "idle", &now, &e), &e);
	CHECK_OK(store_wrapper_open(w.s, ID("1"), "main", &now, &e), &e);
	CHECK_OK(step(w.s, &now, (struct lease_input){ LEASE_ALLOCATE, { 0, "wi_a" } }, &e), &e);
	CHECK_OK(store_wrappers_due(w.s, &due, count, &got, &e), &e);
	CHECK_INT((long long)got.version, 0);
	raw(w.sql, "WITH x AS (UPDATE wrapper SET deadline_at = now() - interval '1 second' "
		   "WHERE name = 'main' RETURNING 1) SELECT count(*) FROM x");
	for (int i = 1; i <= 2; i++) {
		CHECK_OK(store_wrappers_due(w.s, &due, count, &got, &e), &e);
		CHECK_INT((long long)got.version, i);
		CHECK_STR(got.name, "main");
	}
	due.boot = &(struct wrapper_boot){ .host = "h2" };
	CHECK_OK(store_wrappers_due(w.s, &due, count, &got, &e), &e);
	CHECK_INT((long long)got.version, 2);
	due = (struct wrapper_due){ .boot = &this_boot, .limit = 10, .stopping = true };
	CHECK_OK(store_wrapper_get(w.s, ID("1"), "main", &now, &e), &e);
	CHECK_OK(step(w.s, &now, (struct lease_input){ .event = LEASE_STOP }, &e), &e);
	CHECK_OK(step(w.s, &now, (struct lease_input){ .event = LEASE_BEGIN, .attempt = 3 }, &e),
		 &e);
	CHECK_OK(store_wrappers_due(w.s, &due, count, &got, &e), &e);
	CHECK_INT((long long)got.version, 3);
}

static void keep(const struct wrapper *w, void *arg)
{
	*(struct wrapper *)arg = *w;
}

/* R7: whatever of it cannot be read, it is quarantined, never none and never an error. */
TEST(a_lease_of_which_anything_cannot_be_read_is_quarantined)
{
	/* clang-format off */
	static const struct {
		const char *column, *value;
	} damage[] = {
		{ "state", "'redy'" },			{ "next_generation", "-1" },
		{ "instance", "repeat('x', 60)" },	{ "generation", "-7" },
		{ "stop_attempt", "-1" },		{ "stop_attempts", "-1" },
		{ "stop_rechecks", "5000000000" },	{ "last_error", "repeat('x', 300)" },
		{ "what", "repeat('x', 100)" },		{ "receipt", "repeat('x', 2000)" },
		{ "reason", "repeat('x', 100)" },	{ "deadline_at", "'1960-01-01'" },
	};
	/* clang-format on */
	cleanup(world_done) struct world w = world_make();
	struct err e;

	add(w.s, ID("1"), "ann");
	(void)raw(w.sql, "DO $$ DECLARE c text; BEGIN FOR c IN SELECT conname FROM pg_constraint "
			 "WHERE conrelid = 'wrapper'::regclass AND contype = 'c' LOOP EXECUTE "
			 "'ALTER TABLE wrapper DROP CONSTRAINT ' || c; END LOOP; END $$");
	for (size_t i = 0; i < array_len(damage); i++) {
		struct wrapper got, listed = { 0 };
		char sql[256], name[8];

		snprintf(name, sizeof(name), "w%zu", i);
		CHECK_OK(store_wrapper_open(w.s, ID("1"), name, &got, &e), &e);
		CHECK(!got.unreadable && got.lease.state == LEASE_NONE);
		snprintf(sql, sizeof(sql), "UPDATE wrapper SET %s = %s WHERE name = '%s'",
			 damage[i].column, damage[i].value, name);
		(void)raw(w.sql, sql);
		CHECK_OK(store_wrapper_get(w.s, ID("1"), name, &got, &e), &e);
		CHECK(got.unreadable && got.lease.session_wide && got.lease.stop.last_error[0]);
		CHECK_INT(got.lease.state, LEASE_QUARANTINED);
		CHECK_INT(got.lease.stop.state, STOP_QUARANTINED);
		CHECK(got.lease.next_generation > got.lease.instance.generation);
		CHECK_OK(store_wrapper_list(w.s, ID("1"), keep, &listed, &e), &e);
		CHECK(listed.unreadable);
		CHECK_OK(step(w.s, &got, (struct lease_input){ LEASE_RECHECK, .attempt = 9 }, &e),
			 &e);
		CHECK(!got.unreadable && got.lease.state == LEASE_QUARANTINED); /* written anew */
		(void)raw(w.sql, "DELETE FROM wrapper");
	}
}

TEST(they_go_with_their_sandbox)
{
	cleanup(world_done) struct world w = world_make();
	struct wrapper now;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_OK(store_wrapper_open(w.s, ID("1"), "main", &now, &e), &e);
	raw(w.sql, "WITH x AS (DELETE FROM sandbox RETURNING 1) SELECT count(*) FROM x");
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM wrapper"), 0);
}

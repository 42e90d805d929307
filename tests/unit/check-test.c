#include "api/check/compare.h"
#include "test.h"

static const struct node_observation alive = {
	.presence = PRESENCE_PRESENT,
	.process = PRESENCE_PRESENT,
	.cgroup = PRESENCE_PRESENT,
	.disk = PRESENCE_PRESENT,
	.runtime = PRESENCE_PRESENT,
	.link = PRESENCE_PRESENT,
	.record = PRESENCE_PRESENT,
	.ready = 1,
};

static struct sandbox in_state(enum sandbox_state state)
{
	return (struct sandbox){ .state = state, .generation = 1, .host = "h1" };
}

TEST(what_is_there_and_ready_is_well)
{
	struct sandbox sb = in_state(SANDBOX_READY);
	struct node_observation o = alive;

	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_NONE);
	o.link = PRESENCE_ABSENT;
	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_NO_LINK);
	o.link = PRESENCE_PRESENT;
	o.ready = 0;
	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_NOT_ANSWERING);
	o.process = PRESENCE_ABSENT;
	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_NOT_RUNNING);
	CHECK_INT(check_row_and_fact(&sb, NULL), CHECK_NOT_RUNNING);
	o = alive;
	o.disk = PRESENCE_ABSENT;
	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_NO_DISK);
}

TEST(unknown_is_never_absent)
{
	const enum sandbox_state states[] = { SANDBOX_READY, SANDBOX_FAILED };

	for (size_t i = 0; i < array_len(states); i++) {
		struct sandbox sb = in_state(states[i]);
		struct node_observation o = alive;

		o.process = PRESENCE_UNKNOWN;
		CHECK_INT(check_row_and_fact(&sb, &o), CHECK_UNKNOWN);
	}
}

TEST(one_that_failed_has_no_processes)
{
	struct sandbox sb = in_state(SANDBOX_FAILED);
	struct node_observation o = alive;

	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_STILL_RUNNING);
	o.process = PRESENCE_ABSENT;
	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_NONE);
	CHECK_INT(check_row_and_fact(&sb, NULL), CHECK_NONE);
}

TEST(one_that_sleeps_has_a_disk_and_no_processes)
{
	struct sandbox sb = in_state(SANDBOX_ASLEEP);
	struct node_observation o = alive;

	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_STILL_RUNNING);
	o.process = PRESENCE_ABSENT;
	CHECK_INT(check_row_and_fact(&sb, &o), CHECK_NONE);
	CHECK_INT(check_row_and_fact(&sb, NULL), CHECK_NO_DISK);
}

TEST(a_deletion_is_told_until_it_is_proven)
{
	struct sandbox sb = in_state(SANDBOX_DELETING);

	sb.stop.state = STOP_NEEDED;
	CHECK_INT(check_row_and_fact(&sb, NULL), CHECK_DELETING);
	sb.stop.state = STOP_QUARANTINED;
	CHECK_INT(check_row_and_fact(&sb, &alive), CHECK_QUARANTINED);
}

TEST(a_thing_without_a_row_is_a_ghost_only_by_a_tombstone)
{
	struct sandbox gone = in_state(SANDBOX_GONE), other = in_state(SANDBOX_READY);

	CHECK_INT(check_fact_alone(&gone, "h1"), CHECK_GHOST);
	CHECK_INT(check_fact_alone(NULL, "h1"), CHECK_ORPHAN);
	CHECK_INT(check_fact_alone(&other, "h2"), CHECK_STRAY);
	CHECK_INT(check_fact_alone(&other, "h1"), CHECK_GENERATION);
	CHECK_INT(check_kind_row(CHECK_ORPHAN)->repair, REPAIR_NOTHING);
	CHECK_INT(check_kind_row(CHECK_GENERATION)->repair, REPAIR_NOTHING);
}

TEST(every_kind_says_something)
{
	for (int k = CHECK_NONE + 1; k < CHECK_KIND_COUNT; k++) {
		const struct check_kind_row *row = check_kind_row((enum check_kind)k);

		CHECK(row->name && row->sentence && row->invariant >= 1 &&
		      row->invariant <= CHECK_INVARIANTS);
		CHECK_INT(check_kind_by_name(row->name), k);
	}
	CHECK_INT(check_kind_by_name("something else"), CHECK_UNKNOWN);
}

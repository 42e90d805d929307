#include "berthd/control/check/compare.h"
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

TEST(whatever_is_unknown_of_it_is_told)
{
	static const size_t members[] = { offsetof(struct node_observation, process),
					  offsetof(struct node_observation, cgroup),
					  offsetof(struct node_observation, disk),
					  offsetof(struct node_observation, runtime),
					  offsetof(struct node_observation, link) };

	for (size_t i = 0; i < array_len(members); i++) {
		struct sandbox sb = in_state(SANDBOX_READY);
		struct node_observation o = alive;
		uint32_t unknown = PRESENCE_UNKNOWN;

		memcpy((char *)&o + members[i], &unknown, sizeof(unknown));
		CHECK_INT(check_row_and_fact(&sb, &o), CHECK_UNKNOWN);
		if (members[i] == offsetof(struct node_observation, process))
			continue;
		o.process = PRESENCE_ABSENT;
		sb.state = SANDBOX_FAILED;
		CHECK_INT(check_row_and_fact(&sb, &o), CHECK_UNKNOWN);
	}
}

/* What waits is its deadline's matter, whatever is there. */
TEST(on_its_way_anything_may_be_there)
{
	static const enum sandbox_state states[] = { SANDBOX_CREATING, SANDBOX_FALLING_ASLEEP,
						     SANDBOX_WAKING, SANDBOX_GONE };

	for (size_t i = 0; i < array_len(states); i++) {
		struct sandbox sb = in_state(states[i]);

		CHECK_INT(check_row_and_fact(&sb, NULL), CHECK_NONE);
		CHECK_INT(check_row_and_fact(&sb, &alive), CHECK_NONE);
	}
}

TEST(a_fact_is_told_part_by_part)
{
	struct node_observation o = { .generation = 4,
				      .process = PRESENCE_PRESENT,
				      .cgroup = PRESENCE_ABSENT,
				      .disk = PRESENCE_UNKNOWN,
				      .runtime = PRESENCE_PRESENT,
				      .link = PRESENCE_ABSENT,
				      .record = PRESENCE_UNKNOWN,
				      .detail = "why" };
	char text[400] = "?";

	check_fact_text(NULL, text, sizeof(text));
	CHECK_STR(text, "nothing of it is here");
	check_fact_text(&o, text, sizeof(text));
	CHECK_STR(text, "generation 4: process present, cgroup absent, disk unknown, engine's "
			"record present, link absent, berth-node's record unknown (why)");
}

TEST(a_record_is_told_with_its_next_attempt)
{
	struct sandbox sb = in_state(SANDBOX_READY);
	char text[200] = "?";

	check_record_text(NULL, text, sizeof(text));
	CHECK_STR(text, "none");
	sb.stop = (struct stop){ .state = STOP_NEEDED, .attempts = 3, .next_ms = 1000 };
	check_record_text(&sb, text, sizeof(text));
	CHECK_STR(text, "ready, generation 1 on h1");
	sb.state = SANDBOX_DELETING;
	check_record_text(&sb, text, sizeof(text));
	CHECK(strncmp(text, "deleting, generation 1 on h1; attempt 3, next at 1970-01-01", 59) ==
	      0);
	check_record_text(&sb, text, 20); /* it does not fit: what does is told */
	CHECK_STR(text, "deleting, generatio");
	check_record_text(&sb, text, 40); /* nor does what follows */
	CHECK_STR(text, "deleting, generation 1 on h1; attempt 3");
}

TEST(a_finding_is_told_whole)
{
	cleanup(buf_done) struct buf b = buf_make(4096);
	struct check_finding f = { .kind = CHECK_GHOST };

	snprintf(f.what, sizeof(f.what), "sb_x");
	snprintf(f.record, sizeof(f.record), "none");
	snprintf(f.fact, sizeof(f.fact), "all");
	check_finding_json(&b, &f);
	CHECK_STR(buf_str(&b),
		  "{\"what\":\"sb_x\",\"kind\":\"ghost\",\"invariant\":3,\"record\":\"none\","
		  "\"fact\":\"all\",\"sentence\":\"sb_x was deleted, with a receipt, and parts of "
		  "it are here. The next look destroys them.\",\"repair\":\"look\"}");
}

/* Each kind: the invariant that it breaks, and what --repair may do about it. */
TEST(every_kind_is_of_an_invariant_and_has_its_repair)
{
	static const struct {
		const char *name;
		unsigned invariant;
		enum check_repair repair;
	} want[CHECK_KIND_COUNT] = {
		[CHECK_NONE] = { "none", 0, REPAIR_NOTHING },
		[CHECK_NOT_RUNNING] = { "not_running", 2, REPAIR_LOOK },
		[CHECK_NOT_ANSWERING] = { "not_answering", 2, REPAIR_LOOK },
		[CHECK_NO_DISK] = { "no_disk", 2, REPAIR_NOTHING },
		[CHECK_NO_LINK] = { "no_link", 2, REPAIR_NOTHING },
		[CHECK_STILL_RUNNING] = { "still_running", 2, REPAIR_LOOK },
		[CHECK_DELETING] = { "deleting", 3, REPAIR_DELETE },
		[CHECK_QUARANTINED] = { "quarantined", 3, REPAIR_DELETE },
		[CHECK_GHOST] = { "ghost", 3, REPAIR_LOOK },
		[CHECK_ORPHAN] = { "orphan", 2, REPAIR_NOTHING },
		[CHECK_STRAY] = { "stray", 2, REPAIR_NOTHING },
		[CHECK_GENERATION] = { "generation", 5, REPAIR_NOTHING },
		[CHECK_UNKNOWN] = { "unknown", 2, REPAIR_NOTHING },
		[CHECK_OVERDUE] = { "overdue", 4, REPAIR_LOOK },
		[CHECK_NO_DEADLINE] = { "no_deadline", 4, REPAIR_NOTHING },
		[CHECK_UNPROVEN] = { "unproven", 3, REPAIR_NOTHING },
		[CHECK_TWICE] = { "twice", 3, REPAIR_NOTHING },
		[CHECK_FORGOTTEN] = { "forgotten", 3, REPAIR_NOTHING },
		[CHECK_NO_IMAGE] = { "no_image", 2, REPAIR_NOTHING },
		[CHECK_UNNAMED_IMAGE] = { "unnamed_image", 2, REPAIR_FORGET },
		[CHECK_UNLEASED] = { "unleased", 1, REPAIR_NOTHING },
	};

	for (int k = 0; k < CHECK_KIND_COUNT; k++) {
		const struct check_kind_row *row = check_kind_row((enum check_kind)k);

		CHECK(want[k].name);
		CHECK_STR(row->name, want[k].name);
		CHECK_INT(row->invariant, want[k].invariant);
		CHECK_INT(row->repair, want[k].repair);
		CHECK(strlen(row->sentence) > 15);
		CHECK(strchr(".?", row->sentence[strlen(row->sentence) - 1]));
	}
}

TEST(an_invariant_is_checked_by_a_finding_or_says_why_not)
{
	for (unsigned i = 1; i <= CHECK_INVARIANTS; i++) {
		bool found = false;

		for (int k = 0; k < CHECK_KIND_COUNT; k++)
			found = found || check_kind_row((enum check_kind)k)->invariant == i;
		CHECK_INT(found, check_invariant_unchecked(i) == NULL);
		CHECK(check_invariant_name(i) && strlen(check_invariant_name(i)) > 10);
	}
}

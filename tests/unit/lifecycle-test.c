#include "core/lifecycle.h"

#include "test.h"

static const char *const action_names[SANDBOX_ACTION_COUNT] = {
	[ACT_NONE] = "none",
	[ACT_BUILD] = "build",
	[ACT_SLEEP] = "sleep",
	[ACT_WAKE] = "wake",
	[ACT_STOP] = "stop",
	[ACT_DESTROY] = "destroy",
	[ACT_REPORT] = "report",
};

/* The whole matrix, once more and by other means: state>action, "!" refused. */
TEST(every_cell_is_as_designed)
{
	/* clang-format off */
	static const char *const want[SANDBOX_STATE_COUNT][SANDBOX_EVENT_COUNT] = {
		/* up, broken, seen, absent, removed, timeout, use, sleep, wake, delete */
		{ "ready>none", "failed>destroy", "creating>build", "creating>build",
		  "creating>build", "failed>destroy", "!", "!", "creating>none",
		  "deleting>destroy" },
		{ "ready>none", "ready>none", "ready>none", "failed>report",
		  "failed>report", "ready>none", "ready>none", "falling_asleep>sleep",
		  "ready>none", "deleting>destroy" },
		{ "falling_asleep>sleep", "falling_asleep>sleep", "falling_asleep>sleep",
		  "asleep>none", "failed>report", "falling_asleep>sleep", "!",
		  "falling_asleep>none", "!", "deleting>destroy" },
		{ "falling_asleep>sleep", "asleep>none", "falling_asleep>sleep", "asleep>none",
		  "failed>report", "asleep>none", "waking>wake", "asleep>none", "waking>wake",
		  "deleting>destroy" },
		{ "ready>none", "failed>stop", "waking>wake", "waking>wake", "failed>report",
		  "failed>stop", "!", "!", "waking>none", "deleting>destroy" },
		{ "deleting>destroy", "deleting>destroy", "deleting>destroy", "deleting>destroy",
		  "gone>report", "deleting>destroy", "!", "!", "!", "deleting>destroy" },
		{ "failed>stop", "failed>none", "failed>stop", "failed>none",
		  "failed>none", "failed>none", "!", "!", "waking>wake", "deleting>destroy" },
		{ "gone>destroy", "gone>destroy", "gone>destroy", "gone>none",
		  "gone>none", "gone>none", "!", "!", "!", "gone>none" },
	};
	/* clang-format on */
	struct step step;
	struct err e;
	char got[64];

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		for (int ev = 0; ev < SANDBOX_EVENT_COUNT; ev++) {
			snprintf(got, sizeof(got), "!");
			if (lifecycle_step((enum sandbox_state)s, (enum sandbox_event)ev, &step,
					   &e) == 0)
				snprintf(got, sizeof(got), "%s>%s", sandbox_state_name(step.to),
					 action_names[step.action]);
			if (strcmp(got, want[s][ev]) != 0)
				test_fail(__FILE__, __LINE__, "%s in %s: %s, not %s",
					  sandbox_event_name((enum sandbox_event)ev),
					  sandbox_state_name((enum sandbox_state)s), got,
					  want[s][ev]);
		}
	}
}

TEST(a_sandbox_lives_and_goes)
{
	static const struct {
		enum sandbox_event ev;
		enum sandbox_state to;
		enum sandbox_action action;
	} story[] = {
		{ EV_ABSENT, SANDBOX_CREATING, ACT_BUILD },
		{ EV_UP, SANDBOX_READY, ACT_NONE },
		{ EV_USE, SANDBOX_READY, ACT_NONE },
		{ EV_ABSENT, SANDBOX_FAILED, ACT_REPORT },
		{ EV_DELETE, SANDBOX_DELETING, ACT_DESTROY },
		{ EV_ABSENT, SANDBOX_DELETING, ACT_DESTROY },
		{ EV_TIMEOUT, SANDBOX_DELETING, ACT_DESTROY },
		{ EV_REMOVED, SANDBOX_GONE, ACT_REPORT },
		{ EV_DELETE, SANDBOX_GONE, ACT_NONE },
	};
	enum sandbox_state at = SANDBOX_CREATING;
	struct step step;
	struct err e;

	for (size_t i = 0; i < array_len(story); i++) {
		CHECK_OK(lifecycle_step(at, story[i].ev, &step, &e), &e);
		CHECK_INT(step.to, story[i].to);
		CHECK_INT(step.action, story[i].action);
		at = step.to;
	}
}

TEST(what_is_not_allowed_says_so)
{
	struct step step = { .to = SANDBOX_READY };
	struct err e;

	CHECK_ERR(lifecycle_step(SANDBOX_CREATING, EV_USE, &step, &e), &e, ERR_CONFLICT);
	CHECK_STR(e.msg, "cannot use a sandbox that is creating");
	CHECK_INT(step.to, SANDBOX_READY); /* left as it was */
}

TEST(facts_are_never_refused)
{
	struct step step;
	struct err e;

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++)
		for (int ev = 0; ev < SANDBOX_EVENT_COUNT; ev++)
			if (sandbox_event_is_fact((enum sandbox_event)ev))
				CHECK_OK(lifecycle_step((enum sandbox_state)s,
							(enum sandbox_event)ev, &step, &e),
					 &e);
}

TEST(only_proof_ends_it_and_nothing_leaves_the_end)
{
	struct step step;
	struct err e;

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		for (int ev = 0; ev < SANDBOX_EVENT_COUNT; ev++) {
			if (lifecycle_step((enum sandbox_state)s, (enum sandbox_event)ev, &step,
					   &e) < 0)
				continue;
			if (s == SANDBOX_GONE)
				CHECK_INT(step.to, SANDBOX_GONE);
			else if (step.to == SANDBOX_GONE)
				CHECK(s == SANDBOX_DELETING && ev == EV_REMOVED);
		}
	}
}

TEST(whoever_waits_has_a_deadline_and_comes_out_of_it_acting)
{
	struct step step;
	struct err e;

	CHECK_INT(lifecycle_deadline_ms(SANDBOX_CREATING, 1), 600000);
	CHECK(lifecycle_deadline_ms(SANDBOX_FALLING_ASLEEP, 1) > 0);
	CHECK(lifecycle_deadline_ms(SANDBOX_WAKING, 1) > 0);
	CHECK(lifecycle_deadline_ms(SANDBOX_DELETING, 1) > 0);
	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		bool waits = lifecycle_deadline_ms((enum sandbox_state)s, 1) > 0;

		CHECK_OK(lifecycle_step((enum sandbox_state)s, EV_TIMEOUT, &step, &e), &e);
		CHECK_INT(step.action != ACT_NONE, waits);
		CHECK_INT(lifecycle_deadline_ms((enum sandbox_state)s, 100000) > 0, waits);
	}
}

/* A host is not faster because a test's clock is. */
TEST(a_divisor_leaves_the_host_time_to_work)
{
	CHECK_INT(lifecycle_deadline_ms(SANDBOX_CREATING, 2), 300000);
	CHECK_INT(lifecycle_deadline_ms(SANDBOX_CREATING, 10000), LIFECYCLE_LEAST_MS);
}

TEST(it_sleeps_and_wakes_and_keeps_its_disk)
{
	static const struct {
		enum sandbox_event ev;
		enum sandbox_state to;
		enum sandbox_action action;
	} story[] = {
		{ EV_SLEEP, SANDBOX_FALLING_ASLEEP, ACT_SLEEP },
		{ EV_TIMEOUT, SANDBOX_FALLING_ASLEEP, ACT_SLEEP },
		{ EV_ABSENT, SANDBOX_ASLEEP, ACT_NONE },
		{ EV_USE, SANDBOX_WAKING, ACT_WAKE },
		{ EV_UP, SANDBOX_READY, ACT_NONE },
		{ EV_ABSENT, SANDBOX_FAILED, ACT_REPORT },
		{ EV_WAKE, SANDBOX_WAKING, ACT_WAKE },
		{ EV_BROKEN, SANDBOX_FAILED, ACT_STOP },
	};
	enum sandbox_state at = SANDBOX_READY;
	struct step step;
	struct err e;

	for (size_t i = 0; i < array_len(story); i++) {
		CHECK_OK(lifecycle_step(at, story[i].ev, &step, &e), &e);
		CHECK_INT(step.to, story[i].to);
		CHECK_INT(step.action, story[i].action);
		at = step.to;
	}
}

/* Once it was up, only a deletion destroys: no other event leads to that. */
TEST(files_are_destroyed_by_nothing_but_a_deletion)
{
	static const enum sandbox_state has_files[] = {
		SANDBOX_READY,
		SANDBOX_FALLING_ASLEEP,
		SANDBOX_ASLEEP,
		SANDBOX_WAKING,
		SANDBOX_FAILED,
	};
	struct step step;
	struct err e;

	for (size_t i = 0; i < array_len(has_files); i++)
		for (int ev = 0; ev < SANDBOX_EVENT_COUNT; ev++)
			if (lifecycle_step(has_files[i], (enum sandbox_event)ev, &step, &e) == 0)
				CHECK_INT(step.action == ACT_DESTROY || step.action == ACT_BUILD,
					  ev == EV_DELETE);
}

/* Deleting is always accepted, and then proof is all it takes. */
TEST(every_state_can_reach_the_end)
{
	struct step step;
	struct err e;

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		CHECK_OK(lifecycle_step((enum sandbox_state)s, EV_DELETE, &step, &e), &e);
		CHECK_OK(lifecycle_step(step.to, EV_REMOVED, &step, &e), &e);
		CHECK_INT(step.to, SANDBOX_GONE);
	}
}

TEST(a_box_that_runs_where_none_should_is_always_ended)
{
	static const enum sandbox_state not_wanted[] = {
		SANDBOX_DELETING,
		SANDBOX_FAILED,
		SANDBOX_GONE,
	};
	static const enum sandbox_event running[] = { EV_UP, EV_SEEN };
	struct step step;
	struct err e;

	for (size_t i = 0; i < array_len(not_wanted); i++) {
		for (size_t k = 0; k < array_len(running); k++) {
			CHECK_OK(lifecycle_step(not_wanted[i], running[k], &step, &e), &e);
			CHECK(step.action == ACT_STOP || step.action == ACT_DESTROY);
			CHECK_INT(step.to, not_wanted[i]);
		}
	}
}

TEST(every_name_is_there_and_comes_back)
{
	enum sandbox_state back = SANDBOX_CREATING;

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		CHECK(sandbox_state_by_name(sandbox_state_name((enum sandbox_state)s), &back));
		CHECK_INT(back, s);
	}
	for (int ev = 0; ev < SANDBOX_EVENT_COUNT; ev++)
		CHECK(sandbox_event_name((enum sandbox_event)ev));
	CHECK(!sandbox_state_by_name("running", &back));
	CHECK(!sandbox_state_by_name("", &back));
}

TEST(every_event_has_its_word)
{
	static const char *const events[SANDBOX_EVENT_COUNT] = {
		[EV_UP] = "up",
		[EV_BROKEN] = "broken",
		[EV_SEEN] = "seen",
		[EV_ABSENT] = "absent",
		[EV_REMOVED] = "removed",
		[EV_TIMEOUT] = "timeout",
		[EV_USE] = "use",
		[EV_SLEEP] = "sleep",
		[EV_WAKE] = "wake",
		[EV_DELETE] = "delete",
	};

	for (int ev = 0; ev < SANDBOX_EVENT_COUNT; ev++)
		CHECK_STR(sandbox_event_name((enum sandbox_event)ev), events[ev]);
}

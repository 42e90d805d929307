#include "core/deletion.h"

#include "test.h"

#define T0 UINT64_C(1000000000)

static struct moment at(uint64_t ms)
{
	return (struct moment){ .now_ms = ms, .divisor = 1 };
}

static enum deletion_action apply(struct deletion *d, enum deletion_event ev, bool force,
				  uint64_t ms)
{
	struct deletion_input in = { .event = ev, .force = force };
	struct moment m = at(ms);
	enum deletion_action action = DELETION_ACT_NONE;
	struct err e;

	CHECK_OK(deletion_apply(d, &in, &m, &action, &e), &e);
	return action;
}

static enum deletion_action ladder(struct deletion *d, enum stop_event ev, uint64_t attempt,
				   uint64_t ms)
{
	struct stop_input in = { .event = ev, .attempt = attempt };
	struct moment m = at(ms);
	enum deletion_action action = DELETION_ACT_NONE;
	struct err e;

	CHECK_OK(deletion_ladder(d, &in, &m, &action, &e), &e);
	return action;
}

static enum deletion_action tick(struct deletion *d, uint64_t attempt, uint64_t ms)
{
	struct moment m = at(ms);
	enum deletion_action action = DELETION_ACT_NONE;
	struct err e;

	CHECK_OK(deletion_tick(d, attempt, &m, &action, &e), &e);
	return action;
}

/* As the saga itself gets there. */
static struct deletion in_state(enum deletion_state state)
{
	struct deletion d;

	deletion_init(&d, 41);
	if (state >= DELETION_PENDING)
		apply(&d, DELETION_REQUEST, false, T0);
	if (state >= DELETION_STOPPING)
		apply(&d, DELETION_BEGIN, false, T0);
	if (state >= DELETION_RELEASING)
		apply(&d, DELETION_PROVEN, false, T0);
	if (state >= DELETION_TOMBSTONED)
		apply(&d, DELETION_PROVEN, false, T0);
	CHECK_INT(d.state, state);
	return d;
}

TEST(every_cell_is_as_designed)
{
	/* clang-format off */
	static const char *const want[DELETION_STATE_COUNT][DELETION_EVENT_COUNT] = {
		/* request, use, begin, proven, ended, removed, seen */
		{ "pending>begin", "active>nothing", "!", "active>stopped", "active>stopped",
		  "active>stopped", "active>nothing" },
		{ "pending>note", "!", "stopping>try", "pending>begin", "pending>begin",
		  "tombstoned>erase", "pending>nothing" },
		{ "stopping>note", "!", "!", "releasing>try", "releasing>try",
		  "tombstoned>erase", "stopping>nothing" },
		{ "releasing>note", "!", "!", "tombstoned>erase", "releasing>nothing",
		  "tombstoned>erase", "releasing>nothing" },
		{ "tombstoned>receipt", "!", "!", "tombstoned>nothing", "tombstoned>nothing",
		  "tombstoned>nothing", "tombstoned>destroy" },
	};
	/* clang-format on */
	struct moment m = at(T0);
	struct err e;
	char got[64];

	for (int s = 0; s < DELETION_STATE_COUNT; s++) {
		for (int ev = 0; ev < DELETION_EVENT_COUNT; ev++) {
			struct deletion d = in_state((enum deletion_state)s), before = d;
			struct deletion_input in = { .event = (enum deletion_event)ev };
			enum deletion_action action;

			snprintf(got, sizeof(got), "!");
			if (deletion_apply(&d, &in, &m, &action, &e) == 0)
				snprintf(got, sizeof(got), "%s>%s", deletion_state_name(d.state),
					 deletion_action_name(action));
			else
				CHECK(e.code == ERR_CONFLICT &&
				      memcmp(&d, &before, sizeof(d)) == 0);
			if (strcmp(got, want[s][ev]) != 0)
				test_fail(__FILE__, __LINE__, "%s in %s: %s, not %s",
					  deletion_event_name((enum deletion_event)ev),
					  deletion_state_name((enum deletion_state)s), got,
					  want[s][ev]);
			CHECK(!deletion_event_is_fact((enum deletion_event)ev) || got[0] != '!');
			CHECK_INT((long long)d.generation, 41);
		}
	}
}

TEST(a_deletion_runs_by_its_alarms_alone)
{
	struct deletion d;

	deletion_init(&d, 1);
	CHECK_INT(apply(&d, DELETION_REQUEST, false, T0), DELETION_ACT_BEGIN);
	CHECK(deletion_deadline_ms(&d) == T0);
	CHECK_INT(tick(&d, 0, T0), DELETION_ACT_TRY);
	CHECK_INT(tick(&d, 5, T0), DELETION_ACT_END);
	CHECK(deletion_deadline_ms(&d) == T0 + 45000);
	CHECK_INT(tick(&d, 6, T0 + 1), DELETION_ACT_NONE); /* not due */
	CHECK_INT(ladder(&d, STOP_PRESENT, 5, T0 + 100), DELETION_ACT_NONE);
	CHECK_INT(tick(&d, 6, T0 + 5100), DELETION_ACT_END);
	CHECK_INT(ladder(&d, STOP_ABSENT, 6, T0 + 5200), DELETION_ACT_TRY);
	CHECK_INT(d.state, DELETION_RELEASING);
	CHECK_INT(tick(&d, 7, T0 + 5200), DELETION_ACT_DESTROY);
	CHECK_INT(ladder(&d, STOP_UNKNOWN, 7, T0 + 5300), DELETION_ACT_NONE);
	CHECK_INT(tick(&d, 8, T0 + 10300), DELETION_ACT_DESTROY);
	CHECK_INT(ladder(&d, STOP_ABSENT, 8, T0 + 10400), DELETION_ACT_ERASE);
	CHECK_INT(d.state, DELETION_TOMBSTONED);
	CHECK(d.verified_ms == T0 + 10400);
	CHECK(deletion_deadline_ms(&d) == NEVER);
}

/* LS-4, DL-5: a stop on its way keeps its schedule when somebody deletes, ten times. */
TEST(deleting_does_not_bring_an_attempt_forward)
{
	struct deletion d;
	struct stop before;

	deletion_init(&d, 1);
	ladder(&d, STOP_REQUEST, 0, T0);
	ladder(&d, STOP_BEGIN, 1, T0);
	ladder(&d, STOP_PRESENT, 1, T0);
	before = d.stop;
	for (int i = 0; i < 10; i++)
		apply(&d, DELETION_REQUEST, i % 2, T0 + 1);
	CHECK_INT(apply(&d, DELETION_BEGIN, false, T0 + 1), DELETION_ACT_NOTE);
	apply(&d, DELETION_REQUEST, true, T0 + 1);
	CHECK(memcmp(&d.stop, &before, sizeof(before)) == 0);
	CHECK(deletion_deadline_ms(&d) == T0 + 5000);
}

/* Never from "unknown" to "absent": only these erase. */
TEST(nothing_but_proof_erases)
{
	for (int s = 0; s < DELETION_STATE_COUNT; s++) {
		for (int ev = 0; ev < STOP_EVENT_COUNT; ev++) {
			struct deletion d = in_state((enum deletion_state)s);
			struct stop_input in = { .event = (enum stop_event)ev, .attempt = 9 };
			struct moment m = at(T0);
			enum deletion_action action = DELETION_ACT_NONE;
			struct err e;

			if (d.stop.state == STOP_NEEDED)
				ladder(&d, STOP_BEGIN, 9, T0);
			if (deletion_ladder(&d, &in, &m, &action, &e) < 0)
				continue;
			if (action == DELETION_ACT_ERASE)
				CHECK(s == DELETION_RELEASING && ev == STOP_ABSENT);
			if (s == DELETION_TOMBSTONED)
				CHECK_INT(d.state, DELETION_TOMBSTONED);
			CHECK_INT(deletion_deadline_ms(&d) == NEVER,
				  d.state == DELETION_TOMBSTONED ||
					  (d.state == DELETION_ACTIVE &&
					   d.stop.state == STOP_NONE));
		}
	}
}

TEST(a_late_answer_of_the_first_half_proves_nothing_for_the_second)
{
	struct deletion d = in_state(DELETION_STOPPING), before;

	tick(&d, 5, T0);
	ladder(&d, STOP_ABSENT, 5, T0);
	tick(&d, 6, T0);
	before = d;
	CHECK_INT(ladder(&d, STOP_ABSENT, 5, T0), DELETION_ACT_NONE);
	CHECK(memcmp(&d, &before, sizeof(d)) == 0);
	CHECK_INT(ladder(&d, STOP_RELEASE, 0, T0), DELETION_ACT_NONE); /* a reboot keeps disks */
	CHECK_INT(d.state, DELETION_RELEASING);
}

TEST(a_deletion_that_cannot_be_proven_stays_and_is_looked_at)
{
	struct deletion d = in_state(DELETION_STOPPING);
	uint64_t id = 1;

	while (d.stop.state != STOP_QUARANTINED)
		tick(&d, id++, deletion_deadline_ms(&d));
	CHECK_INT((long long)id, 1 + 2 * STOP_ATTEMPTS);
	CHECK_INT(d.state, DELETION_STOPPING);
	CHECK_INT(apply(&d, DELETION_REQUEST, false, T0), DELETION_ACT_NOTE);
	CHECK_INT(d.stop.state, STOP_QUARANTINED);
	CHECK_INT(tick(&d, 50, deletion_deadline_ms(&d)), DELETION_ACT_OBSERVE);
	CHECK_INT(ladder(&d, STOP_ABSENT, 50, T0), DELETION_ACT_TRY);
	CHECK_INT(d.state, DELETION_RELEASING);
}

TEST(force_goes_on_where_it_was_given_up)
{
	struct deletion d = in_state(DELETION_RELEASING);

	ladder(&d, STOP_EXHAUSTED, 0, T0);
	CHECK_INT(apply(&d, DELETION_REQUEST, true, T0), DELETION_ACT_TRY);
	CHECK_INT(tick(&d, 5, T0), DELETION_ACT_DESTROY);
}

TEST(every_state_reaches_the_tombstone)
{
	for (int s = 0; s < DELETION_STATE_COUNT; s++) {
		struct deletion d = in_state((enum deletion_state)s);
		uint64_t id = 1;

		if (s == DELETION_ACTIVE)
			apply(&d, DELETION_REQUEST, false, T0);
		while (d.state != DELETION_TOMBSTONED && id < 10) {
			tick(&d, id++, deletion_deadline_ms(&d));
			if (d.stop.attempt)
				ladder(&d, STOP_ABSENT, d.stop.attempt, T0);
		}
		CHECK_INT(d.state, DELETION_TOMBSTONED);
	}
}

TEST(new_work_is_refused_with_a_sentence)
{
	struct deletion d = in_state(DELETION_PENDING), gone = in_state(DELETION_TOMBSTONED);
	struct deletion stopping;
	struct deletion_input in = { .event = DELETION_USE };
	struct moment m = at(T0);
	enum deletion_action action;
	struct err e;

	CHECK_ERR(deletion_apply(&d, &in, &m, &action, &e), &e, ERR_CONFLICT);
	CHECK_STR(e.msg, "its deletion is pending");
	CHECK_ERR(deletion_apply(&gone, &in, &m, &action, &e), &e, ERR_CONFLICT);
	CHECK_STR(e.msg, "it was deleted");
	deletion_init(&stopping, 1);
	ladder(&stopping, STOP_REQUEST, 0, T0);
	CHECK_ERR(deletion_apply(&stopping, &in, &m, &action, &e), &e, ERR_CONFLICT);
	CHECK_STR(e.msg, "it is being stopped (needed)");

	deletion_init(&d, 1);
	in = (struct deletion_input){ .event = DELETION_REQUEST, .unsaved = true };
	CHECK_ERR(deletion_apply(&d, &in, &m, &action, &e), &e, ERR_CONFLICT);
	in.force = true;
	CHECK_OK(deletion_apply(&d, &in, &m, &action, &e), &e);
	CHECK(d.force);
}

TEST(a_zero_record_neither_runs_nor_destroys)
{
	struct deletion d = { 0 };
	struct deletion_input use = { .event = DELETION_USE };
	struct moment m = at(T0);
	enum deletion_action action;
	struct err e;

	CHECK_ERR(deletion_apply(&d, &use, &m, &action, &e), &e, ERR_CONFLICT);
	CHECK_INT(tick(&d, 1, T0), DELETION_ACT_OBSERVE);
}

TEST(every_name_comes_back)
{
	enum deletion_state back = DELETION_ACTIVE;

	for (int s = 0; s < DELETION_STATE_COUNT; s++) {
		CHECK(deletion_state_by_name(deletion_state_name((enum deletion_state)s), &back));
		CHECK_INT(back, s);
	}
	CHECK(!deletion_state_by_name("gone", &back));
}

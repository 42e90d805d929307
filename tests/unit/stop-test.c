#include "core/stop.h"

#include "records.h"
#include "stop-records.h"
#include "test.h"

static const char *const action_names[STOP_ACTION_COUNT] = {
	[STOP_ACT_NONE] = "nothing",
	[STOP_ACT_NOTE] = "note",
	[STOP_ACT_TRY] = "try",
	[STOP_ACT_END] = "end",
	[STOP_ACT_OBSERVE] = "observe",
	[STOP_ACT_ALERT] = "alert",
	[STOP_ACT_DONE] = "done",
};

#define T0 UINT64_C(1000000000)

static struct moment at(uint64_t ms)
{
	return (struct moment){ .now_ms = ms, .divisor = 1 };
}

static enum stop_action feed(struct stop *s, enum stop_event ev, uint64_t attempt, uint64_t ms)
{
	struct stop_input in = { .event = ev, .attempt = attempt, .text = "because" };
	struct moment m = at(ms);
	enum stop_action action = STOP_ACTION_COUNT; /* it must be written */
	struct err e;

	CHECK_OK(stop_apply(s, &in, &m, &action, &e), &e);
	return action;
}

/* A record in each state, everything in it due at T0; 7 is in flight where something is. */
static struct stop in_state(enum stop_state state)
{
	struct stop s = { .state = state, .requested_ms = T0 - 1 };

	if (state == STOP_NEEDED || state == STOP_QUARANTINED)
		s.next_ms = T0;
	if (state == STOP_STOPPING || state == STOP_QUARANTINED) {
		s.attempts = state == STOP_STOPPING ? 1 : STOP_ATTEMPTS;
		s.attempt = 7;
		s.deadline_ms = T0;
	}
	return s;
}

TEST(every_cell_is_as_designed)
{
	/* clang-format off */
	static const char *const want[STOP_STATE_COUNT][STOP_EVENT_COUNT] = {
		/* request, force, begin, recheck,
		 * absent, present, unknown, expired, exhausted, release */
		[STOP_QUARANTINED] = {
		  "quarantined>note", "needed>try", "!", "quarantined>observe",
		  "none>done", "quarantined>nothing", "quarantined>nothing", "quarantined>nothing",
		  "quarantined>nothing", "none>done" },
		[STOP_NONE] = {
		  "needed>try", "needed>try", "!", "!",
		  "none>nothing", "none>nothing", "none>nothing", "none>nothing",
		  "none>nothing", "none>nothing" },
		[STOP_NEEDED] = {
		  "needed>note", "needed>note", "stopping>end", "!",
		  "needed>nothing", "needed>nothing", "needed>nothing", "needed>nothing",
		  "quarantined>alert", "none>done" },
		[STOP_STOPPING] = {
		  "stopping>note", "stopping>note", "!", "!",
		  "none>done", "needed>nothing", "needed>nothing", "needed>nothing",
		  "quarantined>alert", "none>done" },
	};
	/* clang-format on */
	struct moment m = at(T0);
	struct err e;
	char got[64];

	for (int s = 0; s < STOP_STATE_COUNT; s++) {
		for (int ev = 0; ev < STOP_EVENT_COUNT; ev++) {
			struct stop rec = in_state((enum stop_state)s);
			struct stop_input in = { .event = (enum stop_event)ev, .attempt = 7 };
			enum stop_action action;

			snprintf(got, sizeof(got), "!");
			if (stop_apply(&rec, &in, &m, &action, &e) == 0)
				snprintf(got, sizeof(got), "%s>%s", stop_state_name(rec.state),
					 action_names[action]);
			else
				CHECK_INT(e.code, ERR_CONFLICT);
			if (strcmp(got, want[s][ev]) != 0)
				test_fail(__FILE__, __LINE__, "%s in %s: %s, not %s",
					  stop_event_name((enum stop_event)ev),
					  stop_state_name((enum stop_state)s), got, want[s][ev]);
		}
	}
}

static void write_changes(struct records *r, const struct stop *was, const struct stop *is)
{
	records_number(r, "attempts", was->attempts, is->attempts);
	records_number(r, "rechecks", was->rechecks, is->rechecks);
	records_number(r, "attempt", was->attempt, is->attempt);
	records_number(r, "requested", was->requested_ms, is->requested_ms);
	records_number(r, "next", was->next_ms, is->next_ms);
	records_number(r, "deadline", was->deadline_ms, is->deadline_ms);
	records_text(r, "reason", was->reason, is->reason);
	records_text(r, "error", was->last_error, is->last_error);
}

/* Each event in each state: first with attempts left, then after the last one. */
TEST(every_cell_leaves_the_record_as_designed)
{
	struct records r = { .want = stop_records, .count = array_len(stop_records) };
	struct moment m = at(T0);

	for (int i = 0; i < 2 * STOP_STATE_COUNT * STOP_EVENT_COUNT; i++) {
		enum stop_event ev = (enum stop_event)(i % STOP_EVENT_COUNT);
		enum stop_state s = (enum stop_state)(i / STOP_EVENT_COUNT % STOP_STATE_COUNT);
		unsigned attempts = i < STOP_STATE_COUNT * STOP_EVENT_COUNT ? 2 : STOP_ATTEMPTS;
		struct stop was = { s, attempts, 3, 7, T0 - 9, T0 - 1, T0 - 2, "old", "older" };
		struct stop_input in = { .event = ev, .attempt = 7, .text = "new" };
		enum stop_action action = STOP_ACT_NONE;
		struct stop is = was;
		struct err e;

		records_add(&r, "%s %s:", stop_state_name(s), stop_event_name(ev));
		if (stop_apply(&is, &in, &m, &action, &e) < 0)
			records_add(&r, " %s", err_name(e.code));
		else
			records_add(&r, " %s>%s", stop_state_name(is.state),
				    action_names[action]);
		write_changes(&r, &was, &is);
		records_end(&r);
	}
	CHECK_INT(r.next, r.count);
}

/* LS-4, LS-16: six attempts, each delay from when the failure was seen; then quarantine. */
TEST(the_ladder_is_climbed_at_the_decided_times)
{
	static const uint64_t delays[] = { 5, 10, 30, 60, 120 };
	struct stop s;
	uint64_t now = T0;

	stop_init(&s);
	CHECK_INT(feed(&s, STOP_REQUEST, 0, now), STOP_ACT_TRY);
	for (unsigned i = 0; i < STOP_ATTEMPTS; i++) {
		CHECK(stop_deadline_ms(&s) == now);
		CHECK_INT(feed(&s, STOP_BEGIN, i + 1, now), STOP_ACT_END);
		CHECK(stop_deadline_ms(&s) == now + 45000);
		CHECK_INT(s.attempts, i + 1);
		now += 20000; /* the attempt took its time */
		if (i < array_len(delays)) {
			CHECK_INT(feed(&s, STOP_PRESENT, i + 1, now), STOP_ACT_NONE);
			CHECK_INT(s.state, STOP_NEEDED);
			now += delays[i] * 1000;
		}
	}
	CHECK_INT(feed(&s, STOP_PRESENT, STOP_ATTEMPTS, now), STOP_ACT_ALERT);
	CHECK_INT(s.state, STOP_QUARANTINED);
	CHECK(stop_deadline_ms(&s) == now + 600000);
}

TEST(asking_again_changes_nothing)
{
	struct stop s, before;

	stop_init(&s);
	feed(&s, STOP_REQUEST, 0, T0);
	feed(&s, STOP_BEGIN, 1, T0);
	feed(&s, STOP_UNKNOWN, 1, T0 + 10);
	before = s;
	for (int i = 0; i < 10; i++) {
		CHECK_INT(feed(&s, STOP_REQUEST, 0, T0 + 20), STOP_ACT_NOTE);
		CHECK_INT(feed(&s, STOP_FORCE, 0, T0 + 20), STOP_ACT_NOTE);
	}
	CHECK(memcmp(&s, &before, sizeof(s)) == 0);
}

TEST(an_attempt_before_its_time_is_refused_with_the_time)
{
	struct stop s = in_state(STOP_NEEDED), before = s;
	struct stop_input in = { .event = STOP_BEGIN, .attempt = 9 };
	struct moment early = at(T0 - 400);
	enum stop_action action = STOP_ACT_ALERT;
	struct err e;

	CHECK_ERR(stop_apply(&s, &in, &early, &action, &e), &e, ERR_CONFLICT);
	CHECK_STR(e.msg, "the next attempt to stop it is in 400 ms");
	CHECK(memcmp(&s, &before, sizeof(s)) == 0);
	CHECK_INT(action, STOP_ACT_ALERT);
	early.now_ms = T0;
	in.attempt = 0;
	CHECK_ERR(stop_apply(&s, &in, &early, &action, &e), &e, ERR_INVALID);
}

/* X19: it would be waited for as long as the clock was set back. */
TEST(a_clock_that_was_set_back_delays_no_attempt)
{
	struct stop s = in_state(STOP_NEEDED);
	struct moment back = at(T0 - 3600000), as_planned = at(T0 - 120000);

	CHECK(stop_is_misdated(&s, &back));
	CHECK(!stop_is_misdated(&s, &as_planned));
	CHECK_INT(feed(&s, STOP_BEGIN, 9, T0 - 3600000), STOP_ACT_END);
	CHECK_INT(s.state, STOP_STOPPING);
	CHECK(!stop_is_misdated(&s, &back));
}

/* LS-5: in no state, and for no kind of answer. */
TEST(an_answer_of_another_attempt_changes_nothing)
{
	static const enum stop_event answers[] = { STOP_ABSENT, STOP_PRESENT, STOP_UNKNOWN };

	for (int state = 0; state < STOP_STATE_COUNT; state++) {
		for (size_t i = 0; i < array_len(answers); i++) {
			struct stop s = in_state((enum stop_state)state), before = s;

			CHECK_INT(feed(&s, answers[i], 8, T0), STOP_ACT_NONE);
			CHECK_INT(feed(&s, answers[i], 0, T0), STOP_ACT_NONE);
			CHECK(memcmp(&s, &before, sizeof(s)) == 0);
		}
	}
}

TEST(an_answer_after_its_attempt_was_given_up_changes_nothing)
{
	struct stop s = in_state(STOP_STOPPING), before;

	feed(&s, STOP_EXPIRED, 7, T0);
	CHECK_INT(s.state, STOP_NEEDED);
	CHECK_STR(s.last_error, "the attempt's deadline passed");
	before = s;
	CHECK_INT(feed(&s, STOP_ABSENT, 7, T0 + 1), STOP_ACT_NONE);
	CHECK(memcmp(&s, &before, sizeof(s)) == 0);
}

TEST(a_timer_that_runs_early_expires_nothing)
{
	struct stop s = in_state(STOP_STOPPING);

	CHECK_INT(feed(&s, STOP_EXPIRED, 7, T0 - 1), STOP_ACT_NONE);
	CHECK_INT(s.state, STOP_STOPPING);
}

/* LS-6: only these lead to "none", and each is an observation. */
TEST(nothing_but_observed_absence_ends_a_stop)
{
	struct moment m = at(T0);
	struct err e;

	for (int state = 0; state < STOP_STATE_COUNT; state++) {
		for (int ev = 0; ev < STOP_EVENT_COUNT; ev++) {
			struct stop s = in_state((enum stop_state)state);
			struct stop_input in = { .event = (enum stop_event)ev, .attempt = 7 };
			enum stop_action action;

			if (state == STOP_NONE || stop_apply(&s, &in, &m, &action, &e) < 0)
				continue;
			if (s.state == STOP_NONE || action == STOP_ACT_DONE)
				CHECK(ev == STOP_ABSENT || ev == STOP_RELEASE);
		}
	}
}

TEST(everything_that_waits_has_a_deadline_and_something_to_do_then)
{
	struct moment m = at(T0);
	struct err e;

	for (int state = 0; state < STOP_STATE_COUNT; state++) {
		for (int ev = 0; ev < STOP_EVENT_COUNT; ev++) {
			struct stop s = in_state((enum stop_state)state);
			struct stop_input in = { .event = (enum stop_event)ev, .attempt = 7 };
			enum stop_event due = STOP_REQUEST;
			enum stop_action action;

			if (stop_apply(&s, &in, &m, &action, &e) < 0)
				continue;
			CHECK_INT(stop_due(&s, &due), s.state != STOP_NONE);
			CHECK_INT(stop_deadline_ms(&s) == NEVER, s.state == STOP_NONE);
			if (s.state == STOP_NONE)
				continue;
			/* what is due then is accepted then, and moves the deadline on */
			CHECK(stop_deadline_ms(&s) >= T0);
			m.now_ms = stop_deadline_ms(&s);
			in = (struct stop_input){ .event = due, .attempt = 99 };
			CHECK_OK(stop_apply(&s, &in, &m, &action, &e), &e);
			CHECK(stop_deadline_ms(&s) > m.now_ms);
			m.now_ms = T0;
		}
	}
}

/* Whatever happens for a while, alarms and one observed absence lead to the end. */
TEST(from_everywhere_there_is_a_way_to_the_end)
{
	for (int state = 0; state < STOP_STATE_COUNT; state++) {
		struct stop s = in_state((enum stop_state)state);
		uint64_t id = 100;

		for (int i = 0; i < 3 && s.state != STOP_NONE; i++) {
			enum stop_event due;

			CHECK(stop_due(&s, &due));
			feed(&s, due, ++id, stop_deadline_ms(&s));
			if (s.attempt)
				feed(&s, STOP_ABSENT, s.attempt, stop_deadline_ms(&s));
		}
		CHECK_INT(s.state, STOP_NONE);
	}
}

TEST(a_quarantine_is_looked_at_ever_more_rarely_and_never_given_up)
{
	struct stop s = in_state(STOP_QUARANTINED);
	uint64_t last = 0;

	for (uint64_t i = 1; i < 100; i++) {
		uint64_t now = stop_deadline_ms(&s), wait;

		CHECK_INT(feed(&s, STOP_RECHECK, i, now), STOP_ACT_OBSERVE);
		wait = stop_deadline_ms(&s) - now;
		CHECK(wait >= last && wait <= 6 * 3600000);
		last = wait;
		feed(&s, i % 2 ? STOP_UNKNOWN : STOP_PRESENT, i, now + 5);
		CHECK_INT(s.state, STOP_QUARANTINED);
	}
	CHECK(last == 6 * 3600000);
}

/* LS-13: a user who waits is answered now, and the schedule does not slip. */
TEST(a_forced_look_leaves_the_schedule_alone)
{
	struct stop s = in_state(STOP_QUARANTINED);
	struct stop_input again = { .event = STOP_RECHECK, .attempt = 9 };
	struct moment m = at(T0 + 1001);
	enum stop_action action;
	uint64_t next;
	struct err e;

	feed(&s, STOP_RECHECK, 1, T0);
	feed(&s, STOP_PRESENT, 1, T0 + 1);
	next = s.next_ms;
	CHECK_INT(feed(&s, STOP_RECHECK, 2, T0 + 1000), STOP_ACT_OBSERVE);
	CHECK(s.next_ms == next);
	CHECK_ERR(stop_apply(&s, &again, &m, &action, &e), &e, ERR_CONFLICT);
	m.now_ms = T0 + 1000 + 45000; /* that look never came back */
	CHECK_OK(stop_apply(&s, &again, &m, &action, &e), &e);
	CHECK_INT(feed(&s, STOP_ABSENT, 2, m.now_ms), STOP_ACT_NONE);
	CHECK_INT(feed(&s, STOP_ABSENT, 9, m.now_ms), STOP_ACT_DONE);
}

TEST(what_cannot_be_read_is_quarantined)
{
	struct stop zero = { 0 };

	CHECK_INT(zero.state, STOP_QUARANTINED);
	CHECK(stop_deadline_ms(&zero) == 0);
	CHECK_INT(feed(&zero, STOP_RECHECK, 1, T0), STOP_ACT_OBSERVE);
	CHECK_INT(feed(&zero, STOP_UNKNOWN, 1, T0), STOP_ACT_NONE);
	CHECK_INT(zero.state, STOP_QUARANTINED);
	CHECK_INT(stop_state_by_name("stoped"), STOP_QUARANTINED);
	CHECK_INT(stop_state_by_name(""), STOP_QUARANTINED);
	for (int i = 0; i < STOP_STATE_COUNT; i++)
		CHECK_INT(stop_state_by_name(stop_state_name((enum stop_state)i)), i);
}

TEST(force_leaves_quarantine_and_keeps_its_slowness)
{
	struct stop s = in_state(STOP_QUARANTINED);

	s.rechecks = 3;
	CHECK_INT(feed(&s, STOP_FORCE, 0, T0), STOP_ACT_TRY);
	feed(&s, STOP_BEGIN, 50, T0);
	CHECK_INT(s.attempts, STOP_ATTEMPTS);
	CHECK_INT(feed(&s, STOP_ABSENT, 7, T0), STOP_ACT_NONE);    /* the look before it */
	CHECK_INT(feed(&s, STOP_PRESENT, 50, T0), STOP_ACT_ALERT); /* one, not six */
	CHECK(stop_deadline_ms(&s) == T0 + 80 * 60000);
}

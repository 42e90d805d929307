#include "core/lease.h"

#include "lease-records.h"
#include "records.h"
#include "test.h"

static const char *const action_names[LEASE_ACTION_COUNT] = {
	[LEASE_ACT_NONE] = "nothing",
	[LEASE_ACT_NOTE] = "note",
	[LEASE_ACT_SPAWN] = "spawn",
	[LEASE_ACT_USE] = "use",
	[LEASE_ACT_TRY] = "try",
	[LEASE_ACT_SUPERVISE] = "supervise",
	[LEASE_ACT_END] = "end",
	[LEASE_ACT_OBSERVE] = "observe",
	[LEASE_ACT_ALERT] = "alert",
	[LEASE_ACT_DRAIN] = "drain",
};

#define T0 UINT64_C(1000000000)

static const struct instance ours = { 4, "wr_ours" };
static const struct instance other = { 4, "wr_other" };

static struct moment at(uint64_t ms)
{
	return (struct moment){ .now_ms = ms, .divisor = 1 };
}

static enum lease_action feed(struct lease *l, struct lease_input in, uint64_t ms)
{
	struct moment m = at(ms);
	enum lease_action action = LEASE_ACTION_COUNT; /* it must be written */
	struct err e;

	CHECK_OK(lease_apply(l, &in, &m, &action, &e), &e);
	return action;
}

/* Everything in it due at T0; attempt 7 is in flight where one is. */
static struct lease in_state(enum lease_state state)
{
	static const enum stop_state ladder[LEASE_STATE_COUNT] = {
		[LEASE_NONE] = STOP_NONE,
		[LEASE_STARTING] = STOP_NONE,
		[LEASE_READY] = STOP_NONE,
		[LEASE_BUSY] = STOP_NONE,
		[LEASE_WARM] = STOP_NONE,
		[LEASE_STOP_NEEDED] = STOP_NEEDED,
		[LEASE_STOPPING] = STOP_STOPPING,
		[LEASE_QUARANTINED] = STOP_QUARANTINED,
	};
	struct lease l;

	lease_init(&l);
	l.state = state;
	l.next_generation = 5;
	l.stop.state = ladder[state];
	if (state != LEASE_NONE)
		l.instance = ours;
	if (ladder[state] == STOP_NONE && state != LEASE_NONE)
		l.deadline_ms = T0;
	if (ladder[state] == STOP_NEEDED || ladder[state] == STOP_QUARANTINED)
		l.stop.next_ms = T0;
	if (ladder[state] == STOP_STOPPING || ladder[state] == STOP_QUARANTINED) {
		l.stop.attempts = 1;
		l.stop.attempt = 7;
		l.stop.deadline_ms = T0;
	}
	return l;
}

static struct lease_input input(enum lease_event ev)
{
	return (struct lease_input){ .event = ev,
				     .instance = ours,
				     .attempt = 7,
				     .reason = LEASE_USER_INTERRUPT };
}

TEST(every_cell_is_as_designed)
{
	/* clang-format off */
	static const char *const want[LEASE_STATE_COUNT][LEASE_EVENT_COUNT] = {
		/* allocate, reuse, stop, force, begin, recheck,
		 * verified, accepted, settled, owned_absent, timeout,
		 * absent, present, unknown, exhausted, release */
		[LEASE_QUARANTINED] = {
		  "!", "!", "quarantined>note", "stop_needed>try", "!", "quarantined>observe",
		  "quarantined>nothing", "quarantined>nothing", "quarantined>nothing",
		  "quarantined>nothing", "quarantined>nothing",
		  "none>drain", "quarantined>nothing", "quarantined>nothing",
		  "quarantined>nothing", "none>drain" },
		[LEASE_NONE] = {
		  "starting>spawn", "!", "stop_needed>try", "stop_needed>try", "!", "!",
		  "none>nothing", "none>nothing", "none>nothing", "none>nothing", "none>nothing",
		  "none>nothing", "none>nothing", "none>nothing", "none>nothing", "none>nothing" },
		[LEASE_STARTING] = {
		  "!", "starting>use", "stop_needed>try", "stop_needed>try", "!", "!",
		  "ready>nothing", "busy>supervise", "warm>nothing", "none>drain",
		  "stop_needed>try", "starting>nothing", "starting>nothing", "starting>nothing",
		  "starting>nothing", "none>drain" },
		[LEASE_READY] = {
		  "!", "ready>use", "stop_needed>try", "stop_needed>try", "!", "!",
		  "ready>nothing", "busy>supervise", "warm>nothing", "none>drain",
		  "stop_needed>try", "ready>nothing", "ready>nothing", "ready>nothing",
		  "ready>nothing", "none>drain" },
		[LEASE_BUSY] = {
		  "!", "busy>use", "stop_needed>try", "stop_needed>try", "!", "!",
		  "busy>nothing", "busy>nothing", "warm>nothing", "none>drain",
		  "warm>nothing", "busy>nothing", "busy>nothing", "busy>nothing",
		  "busy>nothing", "none>drain" },
		[LEASE_WARM] = {
		  "!", "starting>use", "stop_needed>try", "stop_needed>try", "!", "!",
		  "warm>nothing", "busy>supervise", "warm>nothing", "none>drain",
		  "stop_needed>try", "warm>nothing", "warm>nothing", "warm>nothing",
		  "warm>nothing", "none>drain" },
		[LEASE_STOP_NEEDED] = {
		  "!", "!", "stop_needed>note", "stop_needed>note", "stopping>end", "!",
		  "stop_needed>nothing", "stop_needed>nothing", "stop_needed>nothing",
		  "stop_needed>nothing", "stop_needed>nothing",
		  "stop_needed>nothing", "stop_needed>nothing", "stop_needed>nothing",
		  "quarantined>alert", "none>drain" },
		[LEASE_STOPPING] = {
		  "!", "!", "stopping>note", "stopping>note", "!", "!",
		  "stopping>nothing", "stopping>nothing", "stopping>nothing",
		  "stopping>nothing", "stop_needed>nothing",
		  "none>drain", "stop_needed>nothing", "stop_needed>nothing",
		  "quarantined>alert", "none>drain" },
	};
	/* clang-format on */
	struct moment m = at(T0);
	struct err e;
	char got[64];

	for (int s = 0; s < LEASE_STATE_COUNT; s++) {
		for (int ev = 0; ev < LEASE_EVENT_COUNT; ev++) {
			struct lease l = in_state((enum lease_state)s);
			struct lease_input in = input((enum lease_event)ev);
			enum lease_action action;

			snprintf(got, sizeof(got), "!");
			if (lease_apply(&l, &in, &m, &action, &e) == 0)
				snprintf(got, sizeof(got), "%s>%s", lease_state_name(l.state),
					 action_names[action]);
			else
				CHECK_INT(e.code, ERR_CONFLICT);
			if (strcmp(got, want[s][ev]) != 0)
				test_fail(__FILE__, __LINE__, "%s in %s: %s, not %s",
					  lease_event_name((enum lease_event)ev),
					  lease_state_name((enum lease_state)s), got, want[s][ev]);
			CHECK(l.next_generation >= 5);
			CHECK_INT(lease_deadline_ms(&l) == NEVER, l.state == LEASE_NONE);
			if (l.state == LEASE_NONE && s != LEASE_NONE) /* only by observation */
				CHECK(ev == LEASE_OWNED_ABSENT || ev == LEASE_ABSENT ||
				      ev == LEASE_PROVEN);
		}
	}
}

/* Nothing in it is what a rule writes, so that what a rule writes is seen. */
static struct lease full_record(enum lease_state state)
{
	struct lease l = in_state(state);

	l.session_wide = true;
	l.instance = ours;
	l.deadline_ms = T0 - 1;
	l.keep_warm_ms = T0 - 2;
	l.reason = LEASE_UNHEALTHY;
	l.stop.attempts = 2;
	l.stop.attempt = 7;
	l.stop.rechecks = 3;
	l.stop.requested_ms = T0 - 9;
	l.stop.next_ms = T0 - 3;
	l.stop.deadline_ms = T0 - 4;
	memcpy(l.stop.reason, "old", 4);
	memcpy(l.stop.last_error, "older", 6);
	return l;
}

static void write_changes(struct records *r, const struct lease *was, const struct lease *is)
{
	records_number(r, "wide", was->session_wide, is->session_wide);
	records_number(r, "next_generation", was->next_generation, is->next_generation);
	records_number(r, "deadline", was->deadline_ms, is->deadline_ms);
	records_number(r, "keep_warm", was->keep_warm_ms, is->keep_warm_ms);
	records_text(r, "for", lease_reason_name(was->reason), lease_reason_name(is->reason));
	records_number(r, "generation", was->instance.generation, is->instance.generation);
	records_text(r, "id", was->instance.id, is->instance.id);
	records_number(r, "attempts", was->stop.attempts, is->stop.attempts);
	records_number(r, "attempt", was->stop.attempt, is->stop.attempt);
	records_number(r, "rechecks", was->stop.rechecks, is->stop.rechecks);
	records_number(r, "requested", was->stop.requested_ms, is->stop.requested_ms);
	records_number(r, "next", was->stop.next_ms, is->stop.next_ms);
	records_number(r, "stop_deadline", was->stop.deadline_ms, is->stop.deadline_ms);
	records_text(r, "reason", was->stop.reason, is->stop.reason);
	records_text(r, "error", was->stop.last_error, is->stop.last_error);
}

/* Each event in each state; then timeouts of what is working, and stops of what is not wide. */
TEST(every_cell_leaves_the_record_as_designed)
{
	struct records r = { .want = lease_records, .count = array_len(lease_records) };
	struct moment m = at(T0);

	for (int i = 0; i < 2 * LEASE_STATE_COUNT * LEASE_EVENT_COUNT; i++) {
		enum lease_event ev = (enum lease_event)(i % LEASE_EVENT_COUNT);
		int s = i / LEASE_EVENT_COUNT % LEASE_STATE_COUNT;
		bool again = i >= LEASE_STATE_COUNT * LEASE_EVENT_COUNT;
		struct lease was = full_record((enum lease_state)s), is;
		struct lease_input in = input(ev);
		enum lease_action action = LEASE_ACT_NONE;
		struct err e;

		if (again && ev != LEASE_TIMEOUT && ev != LEASE_STOP)
			continue;
		was.session_wide = !again;
		in.working = again;
		in.seen_generation = 5;
		in.text = "new";
		is = was;
		records_add(&r, "%s %s:", lease_state_name(was.state), lease_event_name(ev));
		if (lease_apply(&is, &in, &m, &action, &e) < 0)
			records_add(&r, " %s", err_name(e.code));
		else
			records_add(&r, " %s>%s", lease_state_name(is.state),
				    action_names[action]);
		write_changes(&r, &was, &is);
		records_end(&r);
	}
	CHECK_INT(r.next, r.count);
}

TEST(what_is_due_is_accepted_and_moves_on)
{
	for (int s = 0; s < LEASE_STATE_COUNT; s++) {
		struct lease l = in_state((enum lease_state)s);
		enum lease_event due;

		CHECK_INT(lease_due(&l, &due), s != LEASE_NONE);
		if (s == LEASE_NONE)
			continue;
		CHECK(lease_deadline_ms(&l) == T0);
		feed(&l, input(due), T0);
		CHECK(l.state != (enum lease_state)s || lease_deadline_ms(&l) > T0);
	}
}

TEST(a_wrapper_lives_by_the_decided_times)
{
	struct lease l;

	lease_init(&l);
	feed(&l, (struct lease_input){ .event = LEASE_ALLOCATE, .instance = { 0, "wr_a" } }, T0);
	CHECK_INT((long long)l.instance.generation, 1);
	CHECK(lease_deadline_ms(&l) == T0 + 600000);
	feed(&l, (struct lease_input){ LEASE_VERIFIED, l.instance }, T0 + 10);
	CHECK(lease_deadline_ms(&l) == T0 + 60010);
	feed(&l, (struct lease_input){ LEASE_ACCEPTED, l.instance }, T0 + 20);
	CHECK_INT(l.state, LEASE_BUSY);
	feed(&l, (struct lease_input){ LEASE_SETTLED, l.instance }, T0 + 1000);
	CHECK(lease_deadline_ms(&l) == T0 + 301000);
	feed(&l, (struct lease_input){ LEASE_REUSE, l.instance }, T0 + 2000);
	CHECK(lease_deadline_ms(&l) == T0 + 602000);
	CHECK(l.keep_warm_ms == T0 + 301000);
	feed(&l, (struct lease_input){ LEASE_OWNED_ABSENT, l.instance }, T0 + 3000);
	feed(&l, (struct lease_input){ .event = LEASE_ALLOCATE, .instance = { 0, "wr_b" } }, T0);
	CHECK_INT((long long)l.instance.generation, 2);
}

/* LS-9, X7, X8, X10: what a lost write left is repaired at the deadline, not killed. */
TEST(a_timeout_of_a_working_wrapper_repairs)
{
	static const enum lease_state owned[] = { LEASE_STARTING, LEASE_READY, LEASE_BUSY,
						  LEASE_WARM };

	for (size_t i = 0; i < array_len(owned); i++) {
		struct lease l = in_state(owned[i]);
		struct lease_input in = { .event = LEASE_TIMEOUT, .working = true };

		CHECK_INT(feed(&l, in, T0 - 1), LEASE_ACT_NONE); /* an early timer */
		CHECK_INT(l.state, owned[i]);
		CHECK_INT(feed(&l, in, T0), LEASE_ACT_SUPERVISE);
		CHECK_INT(l.state, LEASE_BUSY);
		CHECK(lease_deadline_ms(&l) == T0 + 90000);
	}
}

/* LS-11: one that works and says nothing for too long must end; unless nobody could look. */
TEST(a_busy_wrapper_that_is_silent_is_unhealthy)
{
	static const struct {
		uint64_t silent_ms, at_ms;
		enum lease_state to;
	} cases[] = {
		{ 329999, T0, LEASE_BUSY },
		{ 330000, T0, LEASE_STOP_NEEDED },
		{ 330000, T0 + 30000, LEASE_STOP_NEEDED },
		{ 330000, T0 + 30001, LEASE_BUSY }, /* the look is late: its host was away */
	};
	struct lease_input in = { .event = LEASE_TIMEOUT, .working = true };

	for (size_t i = 0; i < array_len(cases); i++) {
		struct lease l = in_state(LEASE_BUSY);

		in.silent_ms = cases[i].silent_ms;
		feed(&l, in, cases[i].at_ms);
		CHECK_INT(l.state, cases[i].to);
		if (l.state == LEASE_STOP_NEEDED)
			CHECK_STR(l.stop.last_error, "it was at work and silent for 330000 ms");
		if (l.state == LEASE_STOP_NEEDED)
			CHECK_INT(l.reason, LEASE_UNHEALTHY);
	}
	in.silent_ms = NEVER;
	for (enum lease_state s = LEASE_STARTING; s <= LEASE_READY; s++) {
		struct lease l = in_state(s); /* a repair comes first */

		feed(&l, in, T0);
		CHECK_INT(l.state, LEASE_BUSY);
	}
}

TEST(facts_of_another_instance_or_attempt_change_nothing)
{
	for (int s = 0; s < LEASE_STATE_COUNT; s++) {
		for (int ev = LEASE_VERIFIED; ev <= LEASE_UNKNOWN; ev++) {
			struct lease l = in_state((enum lease_state)s), before = l;
			struct lease_input in = input((enum lease_event)ev);

			if (ev == LEASE_TIMEOUT)
				continue;
			in.instance = other;
			in.attempt = 8;
			CHECK_INT(feed(&l, in, T0), LEASE_ACT_NONE);
			in.instance = (struct instance){ 3, "wr_ours" };
			in.attempt = 0;
			CHECK_INT(feed(&l, in, T0), LEASE_ACT_NONE);
			CHECK(l.state == before.state && l.stop.attempt == before.stop.attempt &&
			      lease_deadline_ms(&l) == lease_deadline_ms(&before));
		}
	}
}

TEST(a_launch_is_authorised_exactly_so)
{
	/* clang-format off */
	static const struct wrapper_observation seen[] = {
		{ .seen = WRAPPER_ABSENT },
		{ .seen = WRAPPER_UNKNOWN },
		{ .seen = WRAPPER_PRESENT, .count = 1, .instance = { 4, "wr_ours" } },
		{ .seen = WRAPPER_PRESENT, .count = 2, .instance = { 4, "wr_ours" } },
		{ .seen = WRAPPER_PRESENT, .count = 1, .instance = { 4, "wr_other" } },
		{ .seen = WRAPPER_PRESENT, .count = 1 },	/* legacy: no marks */
	};
	/* absent, unknown, ours, two, other, unmarked */
	static const char *const want[LEASE_STATE_COUNT] = {
		[LEASE_QUARANTINED] = "BBBBBB",
		[LEASE_NONE]	    = "ASSSSS",
		[LEASE_STARTING]    = "NSRSSS",
		[LEASE_READY]	    = "NSRSSS",
		[LEASE_BUSY]	    = "NSRSSS",
		[LEASE_WARM]	    = "NSRSSS",
		[LEASE_STOP_NEEDED] = "BBBBBB",
		[LEASE_STOPPING]    = "BBBBBB",
	};
	static const char letters[LEASE_VERDICT_COUNT] = { 'B', 'R', 'A', 'N', 'S' };
	/* clang-format on */

	for (int s = 0; s < LEASE_STATE_COUNT; s++) {
		for (size_t i = 0; i < array_len(seen); i++) {
			struct lease l = in_state((enum lease_state)s);
			struct lease_verdict v = lease_authorize(&l, &seen[i]);

			CHECK_INT(letters[v.kind], want[s][i]);
			if (v.kind == LEASE_BLOCKED)
				CHECK(v.retry_ms == T0);
			if (v.kind != LEASE_DO_STOP)
				continue;
			CHECK_INT(v.stop.session_wide, seen[i].seen == WRAPPER_PRESENT);
			feed(&l, v.stop, T0);
			CHECK_INT(l.state, LEASE_STOP_NEEDED);
			CHECK_INT(l.session_wide,
				  seen[i].seen == WRAPPER_PRESENT || s == LEASE_NONE);
			CHECK_INT(lease_authorize(&l, &seen[0]).kind, LEASE_BLOCKED);
		}
	}
}

/* X18: the store was restored from a backup, and somebody newer is alive. */
TEST(generations_stay_above_whatever_was_seen)
{
	struct wrapper_observation o = { WRAPPER_PRESENT, 1, { 90, "wr_x" }, 90 };
	struct lease l = in_state(LEASE_NONE);

	feed(&l, lease_authorize(&l, &o).stop, T0);
	CHECK_INT((long long)l.next_generation, 91);
	feed(&l, (struct lease_input){ .event = LEASE_BEGIN, .attempt = 1 }, T0);
	feed(&l, (struct lease_input){ .event = LEASE_ABSENT, .attempt = 1 }, T0);
	feed(&l, (struct lease_input){ .event = LEASE_ALLOCATE, .instance = { 1, "wr_n" } }, T0);
	CHECK_INT((long long)l.instance.generation, 91);
}

TEST(a_forged_generation_does_not_use_ours_up)
{
	struct wrapper_observation o = { WRAPPER_PRESENT, 1, { UINT64_MAX, "wr_x" }, UINT64_MAX };
	struct lease l = in_state(LEASE_NONE);

	feed(&l, lease_authorize(&l, &o).stop, T0);
	CHECK_INT((long long)l.next_generation, 5);
}

TEST(what_cannot_be_read_is_quarantined)
{
	struct wrapper_observation absent = { .seen = WRAPPER_ABSENT };
	struct lease zero = { 0 };

	CHECK_INT(lease_authorize(&zero, &absent).kind, LEASE_BLOCKED);
	CHECK_INT(lease_state_by_name("redy"), LEASE_QUARANTINED);
	for (int s = 0; s < LEASE_STATE_COUNT; s++)
		CHECK_INT(lease_state_by_name(lease_state_name((enum lease_state)s)), s);
	for (int r = 0; r < LEASE_REASON_COUNT; r++)
		CHECK(lease_reason_name((enum lease_reason)r));
}

TEST(a_launch_and_a_reuse_name_their_instance)
{
	struct lease l = in_state(LEASE_NONE), before = l;
	struct lease_input in = { .event = LEASE_ALLOCATE };
	enum lease_action action;
	struct moment m = at(T0);
	struct err e;

	CHECK_ERR(lease_apply(&l, &in, &m, &action, &e), &e, ERR_INVALID);
	CHECK(memcmp(&l, &before, sizeof(l)) == 0);
	l = in_state(LEASE_WARM);
	before = l;
	in = (struct lease_input){ .event = LEASE_REUSE, .instance = other };
	CHECK_ERR(lease_apply(&l, &in, &m, &action, &e), &e, ERR_CONFLICT);
	CHECK(memcmp(&l, &before, sizeof(l)) == 0);
}

TEST(a_stop_says_what_was_seen)
{
	struct wrapper_observation two = { WRAPPER_PRESENT, 2, { 4, "wr_ours" }, 9 };
	struct wrapper_observation unknown = { .seen = WRAPPER_UNKNOWN };
	struct lease l = in_state(LEASE_BUSY);
	struct lease_input stop = lease_authorize(&l, &two).stop;

	CHECK_INT(stop.event, LEASE_STOP);
	CHECK_INT(stop.reason, LEASE_UNEXPECTED_WRAPPER);
	CHECK(stop.session_wide && stop.seen_generation == 9);
	stop = lease_authorize(&l, &unknown).stop;
	CHECK_INT(stop.event, LEASE_STOP);
	CHECK_INT(stop.reason, LEASE_OBSERVATION_FAILED);
	CHECK(!stop.session_wide && stop.seen_generation == 0);
}

/* Ours stay above what was seen: also above the very next one, and below what can be forged. */
TEST(a_seen_generation_moves_ours_at_its_edges)
{
	static const struct {
		uint64_t seen, next;
	} rows[] = {
		{ 4, 5 },
		{ 5, 6 },
		{ LEASE_SEEN_MAX - 1, LEASE_SEEN_MAX },
		{ LEASE_SEEN_MAX, 5 },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		struct lease l = in_state(LEASE_BUSY);
		struct lease_input in = input(LEASE_STOP);

		in.seen_generation = rows[i].seen;
		feed(&l, in, T0);
		CHECK(l.next_generation == rows[i].next);
		CHECK(!l.session_wide);
	}
}

TEST(every_reason_has_its_word)
{
	/* clang-format off */
	static const char *const words[LEASE_REASON_COUNT] = {
		"none", "readiness-failed", "startup-failed", "unhealthy-wrapper",
		"terminal-failed", "terminal-completed", "terminal-ended", "terminal-interrupted",
		"idle-timeout", "keep-warm-expired", "user-interrupt", "session-delete",
		"unexpected-wrapper", "observation-failed",
	};
	/* clang-format on */

	for (int r = 0; r < LEASE_REASON_COUNT; r++) {
		CHECK_STR(lease_reason_name((enum lease_reason)r), words[r]);
		CHECK_INT(lease_reason_by_name(words[r]), r);
	}
	CHECK_INT(lease_reason_by_name("tired"), LEASE_REASON_NONE);
}

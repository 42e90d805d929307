#include "core/host-lease.h"

#include "host-lease-records.h"
#include "records.h"
#include "test.h"

static const char *const action_names[HOST_LEASE_ACTION_COUNT] = {
	[HOST_ACT_NONE] = "nothing",
	[HOST_ACT_FREEZE] = "freeze",
	[HOST_ACT_THAW] = "thaw",
	[HOST_ACT_KILL] = "kill",
};

#define T0    UINT64_C(1000000000)
#define EPOCH 3

static struct moment at(uint64_t ms)
{
	return (struct moment){ .now_ms = ms, .divisor = 1 };
}

static enum host_lease_action feed(struct host_lease *h, enum host_lease_event ev, uint64_t epoch,
				   uint64_t sent_ms, uint64_t ms)
{
	struct host_lease_input in = { .event = ev, .epoch = epoch, .sent_ms = sent_ms };
	struct moment m = at(ms);
	enum host_lease_action action = HOST_LEASE_ACTION_COUNT; /* it must be written */
	struct err e;

	CHECK_OK(host_lease_apply(h, &in, &m, &action, &e), &e);
	return action;
}

/* Leases end and retries are due at T0; what is renewed at T0 was sent at T0. */
static struct host_lease in_state(enum host_lease_state state)
{
	struct host_lease h = { .state = state, .epoch = EPOCH };

	h.draining = state == HOST_DRAINING;
	if (state != HOST_UNREGISTERED && state != HOST_GONE)
		h.end_ms = T0;
	if (state == HOST_FROZEN || state == HOST_LOST)
		h.retry_ms = T0;
	return h;
}

TEST(every_cell_is_as_designed)
{
	/* clang-format off */
	static const char *const want[HOST_LEASE_STATE_COUNT][HOST_LEASE_EVENT_COUNT] = {
		/* drain, renewed, renew_failed, lease_end_near, epoch_taken,
		 * came_back_same, came_back_other, retry, cleared, removed */
		[HOST_UNREGISTERED] = {
		  "!", "live>thaw", "unregistered>nothing", "unregistered>nothing", "lost>kill",
		  "live>thaw", "lost>kill", "unregistered>nothing", "unregistered>nothing",
		  "gone>kill" },
		[HOST_LIVE] = {
		  "draining>nothing", "live>nothing", "late>nothing", "frozen>freeze", "lost>kill",
		  "live>nothing", "lost>kill", "live>nothing", "live>nothing", "gone>kill" },
		[HOST_LATE] = {
		  "late>nothing", "live>nothing", "late>nothing", "frozen>freeze", "lost>kill",
		  "live>nothing", "lost>kill", "late>nothing", "late>nothing", "gone>kill" },
		[HOST_FROZEN] = {
		  "frozen>nothing", "live>thaw", "frozen>nothing", "frozen>freeze", "lost>kill",
		  "live>thaw", "lost>kill", "frozen>freeze", "frozen>nothing", "gone>kill" },
		[HOST_LOST] = {
		  "!", "lost>kill", "lost>nothing", "lost>nothing", "lost>kill",
		  "lost>kill", "lost>kill", "lost>kill", "unregistered>nothing", "gone>kill" },
		[HOST_DRAINING] = {
		  "draining>nothing", "draining>nothing", "late>nothing", "frozen>freeze",
		  "lost>kill", "draining>nothing", "lost>kill", "draining>nothing",
		  "draining>nothing", "gone>kill" },
		[HOST_GONE] = {
		  "!", "gone>kill", "gone>nothing", "gone>nothing", "gone>kill",
		  "gone>kill", "gone>kill", "gone>nothing", "gone>nothing", "gone>kill" },
	};
	/* clang-format on */
	struct moment m = at(T0);
	struct err e;
	char got[64];

	for (int s = 0; s < HOST_LEASE_STATE_COUNT; s++) {
		for (int ev = 0; ev < HOST_LEASE_EVENT_COUNT; ev++) {
			struct host_lease h = in_state((enum host_lease_state)s);
			struct host_lease_input in = { .event = (enum host_lease_event)ev,
						       .epoch = EPOCH,
						       .sent_ms = T0 };
			enum host_lease_action action;

			snprintf(got, sizeof(got), "!");
			if (host_lease_apply(&h, &in, &m, &action, &e) == 0)
				snprintf(got, sizeof(got), "%s>%s", host_lease_state_name(h.state),
					 action_names[action]);
			else
				CHECK_INT(e.code, ERR_CONFLICT);
			if (strcmp(got, want[s][ev]) != 0)
				test_fail(__FILE__, __LINE__, "%s in %s: %s, not %s",
					  host_lease_event_name((enum host_lease_event)ev),
					  host_lease_state_name((enum host_lease_state)s), got,
					  want[s][ev]);
			CHECK(h.epoch >= EPOCH);
		}
	}
}

/* Each event in each state: of a host neither draining nor clear, then of one that is both. */
TEST(every_cell_leaves_the_record_as_designed)
{
	struct records r = { .want = host_lease_records, .count = array_len(host_lease_records) };
	struct moment m = at(T0);

	for (int i = 0; i < 2 * HOST_LEASE_STATE_COUNT * HOST_LEASE_EVENT_COUNT; i++) {
		enum host_lease_event ev = (enum host_lease_event)(i % HOST_LEASE_EVENT_COUNT);
		int s = i / HOST_LEASE_EVENT_COUNT % HOST_LEASE_STATE_COUNT;
		bool both = i >= HOST_LEASE_STATE_COUNT * HOST_LEASE_EVENT_COUNT;
		struct host_lease was = { (enum host_lease_state)s, both, both, EPOCH, T0 - 3,
					  T0 - 1 };
		struct host_lease_input in = { ev, both ? EPOCH + 1 : EPOCH, T0 - 2 };
		enum host_lease_action action = HOST_ACT_NONE;
		struct host_lease is = was;
		struct err e;

		records_add(&r, "%s %s:", host_lease_state_name(was.state),
			    host_lease_event_name(ev));
		if (host_lease_apply(&is, &in, &m, &action, &e) < 0)
			records_add(&r, " %s", err_name(e.code));
		else
			records_add(&r, " %s>%s", host_lease_state_name(is.state),
				    action_names[action]);
		records_number(&r, "draining", was.draining, is.draining);
		records_number(&r, "clear", was.clear, is.clear);
		records_number(&r, "epoch", was.epoch, is.epoch);
		records_number(&r, "end", was.end_ms, is.end_ms);
		records_number(&r, "retry", was.retry_ms, is.retry_ms);
		records_end(&r);
	}
	CHECK_INT(r.next, r.count);
}

TEST(a_cut_off_host_freezes_in_time_and_thaws_when_it_is_back)
{
	struct host_lease h = { .clear = true };

	CHECK_INT(feed(&h, HOST_RENEWED, 1, T0, T0 + 5), HOST_ACT_THAW);
	CHECK(h.end_ms == T0 + 30000);
	CHECK(host_lease_deadline_ms(&h, 1) == T0 + 25000);
	feed(&h, HOST_RENEW_FAILED, 0, 0, T0 + 10000);
	CHECK_INT(h.state, HOST_LATE);
	CHECK(host_lease_runs(&h) && !host_lease_takes_new(&h));
	CHECK_INT(feed(&h, HOST_LEASE_END_NEAR, 0, 0, T0 + 24999), HOST_ACT_NONE);
	CHECK_INT(feed(&h, HOST_LEASE_END_NEAR, 0, 0, T0 + 25000), HOST_ACT_FREEZE);
	CHECK(!host_lease_runs(&h));
	CHECK_INT(feed(&h, HOST_CAME_BACK_SAME, 1, T0 + 36000, T0 + 36001), HOST_ACT_THAW);
	CHECK(h.end_ms == T0 + 66000);
}

TEST(a_host_that_was_taken_over_kills_clears_and_registers_anew)
{
	struct host_lease h = in_state(HOST_FROZEN);

	CHECK_INT(feed(&h, HOST_CAME_BACK_OTHER, 0, 0, T0), HOST_ACT_KILL);
	CHECK_INT(feed(&h, HOST_RENEWED, EPOCH + 1, T0, T0), HOST_ACT_KILL);
	CHECK_INT(h.state, HOST_LOST);
	CHECK_INT(feed(&h, HOST_RETRY, 0, 0, T0 + 10000), HOST_ACT_KILL);
	feed(&h, HOST_CLEARED, 0, 0, T0 + 11000);
	feed(&h, HOST_RENEWED, EPOCH + 1, T0 + 12000, T0 + 12000);
	CHECK_INT(h.state, HOST_LIVE);
	CHECK_INT((long long)h.epoch, EPOCH + 1);
}

/* A daemon that starts does not know what the one before it left frozen here. */
TEST(a_new_epoch_begins_only_in_an_empty_house)
{
	struct host_lease h = { 0 };

	CHECK_INT(feed(&h, HOST_RENEWED, 1, T0, T0), HOST_ACT_KILL);
	CHECK_INT(h.state, HOST_LOST);
	feed(&h, HOST_CLEARED, 0, 0, T0);
	feed(&h, HOST_RENEWED, 1, T0, T0);
	CHECK_INT(h.state, HOST_LIVE);
	CHECK(!h.clear);

	h = in_state(HOST_UNREGISTERED); /* restarted, and its epoch stands */
	CHECK_INT(feed(&h, HOST_RENEWED, EPOCH, T0, T0), HOST_ACT_THAW);
}

/* An answer that took longer than the lease gives no right to run. */
TEST(a_renewal_counts_from_when_it_was_asked_for)
{
	struct host_lease h = in_state(HOST_FROZEN);

	CHECK_INT(feed(&h, HOST_RENEWED, EPOCH, T0, T0 + 25000), HOST_ACT_NONE);
	CHECK_INT(h.state, HOST_FROZEN);
	CHECK_INT(feed(&h, HOST_RENEWED, EPOCH, T0 + 1, T0), HOST_ACT_NONE); /* of the future */
	CHECK_INT(h.state, HOST_FROZEN);
	CHECK_INT(feed(&h, HOST_RENEWED, EPOCH, T0, T0 + 24999), HOST_ACT_THAW);
	CHECK(h.end_ms == T0 + 30000);
}

TEST(answers_that_overtake_do_not_shorten_the_lease)
{
	struct host_lease h = in_state(HOST_LIVE);

	feed(&h, HOST_RENEWED, EPOCH, T0 + 10000, T0 + 10001);
	feed(&h, HOST_RENEWED, EPOCH, T0, T0 + 10002);
	CHECK(h.end_ms == T0 + 40000);
}

TEST(epochs_only_grow)
{
	for (int s = 0; s < HOST_LEASE_STATE_COUNT; s++) {
		struct host_lease h = in_state((enum host_lease_state)s);
		bool ran = host_lease_runs(&h) || s == HOST_FROZEN;

		CHECK(feed(&h, HOST_RENEWED, EPOCH - 1, T0, T0) != HOST_ACT_THAW);
		CHECK_INT((long long)h.epoch, EPOCH);
		h = in_state((enum host_lease_state)s);
		if (ran) {
			CHECK_INT(feed(&h, HOST_RENEWED, EPOCH + 1, T0, T0), HOST_ACT_KILL);
			CHECK_INT(h.state, HOST_LOST);
		}
	}
}

TEST(a_drain_survives_being_late_and_frozen)
{
	struct host_lease h = in_state(HOST_LIVE);

	feed(&h, HOST_DRAIN, 0, 0, T0 - 20000);
	feed(&h, HOST_RENEW_FAILED, 0, 0, T0 - 10000);
	feed(&h, HOST_LEASE_END_NEAR, 0, 0, T0);
	CHECK_INT(h.state, HOST_FROZEN);
	CHECK_INT(feed(&h, HOST_CAME_BACK_SAME, EPOCH, T0, T0), HOST_ACT_THAW);
	CHECK_INT(h.state, HOST_DRAINING);
	CHECK(!host_lease_takes_new(&h));
}

TEST(everything_that_waits_has_a_deadline_and_acts_then)
{
	for (int s = 0; s < HOST_LEASE_STATE_COUNT; s++) {
		struct host_lease h = in_state((enum host_lease_state)s);
		enum host_lease_event due;
		bool waits = host_lease_due(&h, &due);

		CHECK_INT(waits, s != HOST_UNREGISTERED && s != HOST_GONE);
		CHECK_INT(host_lease_deadline_ms(&h, 1) != NEVER, waits);
		if (!waits)
			continue;
		CHECK(feed(&h, due, 0, 0, host_lease_deadline_ms(&h, 1)) != HOST_ACT_NONE);
		CHECK(host_lease_due(&h, &due));
		CHECK(host_lease_deadline_ms(&h, 1) > T0 - 5000);
	}
}

TEST(every_state_can_be_removed_and_nothing_comes_back)
{
	for (int s = 0; s < HOST_LEASE_STATE_COUNT; s++) {
		struct host_lease h = in_state((enum host_lease_state)s);

		feed(&h, HOST_REMOVED, 0, 0, T0);
		for (int ev = HOST_RENEWED; ev < HOST_LEASE_EVENT_COUNT; ev++) {
			CHECK(feed(&h, (enum host_lease_event)ev, EPOCH + 1, T0, T0) !=
			      HOST_ACT_THAW);
			CHECK_INT(h.state, HOST_GONE);
		}
	}
}

/* Whatever order answers and failures come in: it never runs where others may start. */
TEST(never_two_alive)
{
	uint64_t seed = 12345;

	for (int run = 0; run < 2000; run++) {
		struct host_lease h = { .clear = true };
		uint64_t now = T0, db_end = 0;

		for (int i = 0; i < 60; i++) {
			enum host_lease_event due;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			if ((seed >> 40) % 3) {
				/* the database granted it somewhere between question and answer */
				uint64_t sent = now, took = (seed >> 33) % 20000;

				db_end = sent + took / 2 + 30000;
				while (host_lease_due(&h, &due) &&
				       host_lease_deadline_ms(&h, 1) <= now + took)
					feed(&h, due, 0, 0, host_lease_deadline_ms(&h, 1));
				now += took;
				feed(&h, HOST_RENEWED, 1, sent, now);
			} else {
				now += 10000;
				while (host_lease_due(&h, &due) &&
				       host_lease_deadline_ms(&h, 1) <= now)
					feed(&h, due, 0, 0, host_lease_deadline_ms(&h, 1));
				feed(&h, HOST_RENEW_FAILED, 0, 0, now);
			}
			CHECK(!host_lease_runs(&h) || h.end_ms <= db_end);
			CHECK(!host_lease_runs(&h) || now < db_end);
		}
	}
}

TEST(others_see_what_can_be_relied_upon)
{
	struct host_sight h = { .lease_until_ms = T0 + 30000, .now_ms = T0 };

	CHECK_INT(host_lease_seen(&h, 1), HOST_LIVE);
	h.draining = true;
	CHECK_INT(host_lease_seen(&h, 1), HOST_DRAINING);
	h.now_ms = T0 + 15001; /* it should have renewed */
	CHECK_INT(host_lease_seen(&h, 1), HOST_LATE);
	h.now_ms = T0 + 24999;
	CHECK_INT(host_lease_seen(&h, 1), HOST_LATE);
	h.now_ms = T0 + 25000; /* it froze itself, wherever it is */
	CHECK_INT(host_lease_seen(&h, 1), HOST_FROZEN);
	h.lost = true;
	CHECK_INT(host_lease_seen(&h, 1), HOST_LOST);
	h.removed = true;
	CHECK_INT(host_lease_seen(&h, 1), HOST_GONE);
	h = (struct host_sight){ .lease_until_ms = NEVER, .now_ms = T0 };
	CHECK_INT(host_lease_seen(&h, 1), HOST_LIVE);
}

TEST(late_is_half_a_renewal_after_it_was_due)
{
	struct host_sight h = { .lease_until_ms = T0 + 30000, .now_ms = T0 + 15000 };

	CHECK_INT(host_lease_seen(&h, 1), HOST_LIVE);
	h.now_ms++;
	CHECK_INT(host_lease_seen(&h, 1), HOST_LATE);
}

TEST(a_lease_that_ends_at_once_was_over_before)
{
	struct host_lease h = { .state = HOST_LIVE, .epoch = EPOCH, .end_ms = 4999 };

	CHECK_INT((long long)host_lease_deadline_ms(&h, 1), 0);
	h.end_ms = 5001;
	CHECK_INT((long long)host_lease_deadline_ms(&h, 1), 1);
}

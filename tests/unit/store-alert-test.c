/* Alerts in a real PostgreSQL: raised once, ended with what they are about. */
#include "store-world.h"
#include "store/alert.h"
#include "store/retention.h"
#include "test.h"

struct listed {
	int count;
	struct alert rows[8];
};

static void list_row(const struct alert *a, void *arg)
{
	struct listed *l = arg;

	if (l->count < (int)array_len(l->rows))
		l->rows[l->count] = *a;
	l->count++;
}

static struct listed listed(struct store *s, const char *owner, bool ended)
{
	struct alert_page page = { .owner = owner, .limit = 8, .ended = ended };
	struct listed l = { 0 };
	struct err e;

	CHECK_OK(store_alert_list(s, &page, list_row, &l, &e), &e);
	return l;
}

static void raise_one(struct store *s, const char *kind, const char *subject, const char *message)
{
	struct alert a = { .sandbox = ID("1"), .owner = "ann", .host = "h1" };
	struct err e;

	snprintf(a.kind, sizeof(a.kind), "%s", kind);
	snprintf(a.subject, sizeof(a.subject), "%s", subject);
	snprintf(a.message, sizeof(a.message), "%s", message);
	CHECK_OK(store_alert_raise(s, &a, &e), &e);
}

TEST(an_alert_lasts_until_what_it_is_about_has_ended)
{
	cleanup(world_done) struct world w = world_make();
	struct listed l;
	struct err e;

	raise_one(w.s, "deletion_quarantined", "", "first");
	raise_one(w.s, "deletion_quarantined", "", "second"); /* the same one */
	raise_one(w.s, "wrapper_quarantined", "main", "lost");
	l = listed(w.s, "ann", false);
	CHECK_INT(l.count, 2);
	CHECK_STR(l.rows[0].subject, "main");
	CHECK_STR(l.rows[1].message, "second");
	CHECK_STR(l.rows[1].host, "h1");
	CHECK(l.rows[1].raised_ms > 0);
	CHECK_INT(l.rows[1].ended_ms, 0);
	CHECK_INT(listed(w.s, "bob", false).count, 0);
	CHECK_INT(listed(w.s, NULL, false).count, 2);
	CHECK_OK(store_alert_end(w.s, ID("1"), "wrapper_quarantined", "other", &e), &e);
	CHECK_OK(store_alert_end(w.s, ID("1"), "wrapper_quarantined", "main", &e), &e);
	CHECK_INT(listed(w.s, "ann", false).count, 1);
	l = listed(w.s, "ann", true);
	CHECK_INT(l.count, 2);
	CHECK(l.rows[0].ended_ms >= l.rows[0].raised_ms && l.rows[0].ended_ms > 0);
	raise_one(w.s, "wrapper_quarantined", "main", "lost again"); /* a new one */
	CHECK_INT(listed(w.s, "ann", true).count, 3);
}

TEST(the_end_of_a_sandbox_ends_its_alerts)
{
	cleanup(world_done) struct world w = world_make();
	struct tombstone tomb;
	struct err e;

	add(w.s, ID("1"), "ann");
	raise_one(w.s, "deletion_quarantined", "", "held");
	raise_one(w.s, "wrapper_quarantined", "main", "lost");
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	CHECK_INT(listed(w.s, "ann", false).count, 2);
	CHECK_OK(store_sandbox_erase(w.s, ENDING(ID("1"), 1, "{}"), &tomb, &e), &e);
	CHECK_INT(listed(w.s, "ann", false).count, 0);
	CHECK_INT(listed(w.s, "ann", true).count, 2);
}

TEST(an_alert_is_kept_until_it_has_ended_and_is_old)
{
	cleanup(world_done) struct world w = world_make();
	struct retention_ages ages = { .ms = { [RETENTION_ALERTS] = 3600 * 1000 } };
	uint64_t removed = 0;
	bool more;
	struct err e;

	raise_one(w.s, "deletion_quarantined", "", "held");
	raise_one(w.s, "wrapper_quarantined", "main", "lost");
	raw(w.sql, "UPDATE alert SET raised_at = now() - interval '1y'");
	CHECK_OK(store_retention_run(w.s, &ages, &removed, &more, &e), &e);
	CHECK_INT(removed, 0);
	raw(w.sql, "UPDATE alert SET ended_at = now() - interval '2h' WHERE subject = 'main'");
	CHECK_OK(store_retention_run(w.s, &ages, &removed, &more, &e), &e);
	CHECK_INT(removed, 1);
	CHECK_INT(listed(w.s, NULL, true).count, 1);
}

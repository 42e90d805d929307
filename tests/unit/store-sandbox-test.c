#include "store/sandbox.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "store-world.h"
#include "store/sandbox-event.h"
#include "test.h"

TEST(an_intent_is_stored_whole)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox sb = add(w.s, ID("1"), "ann"), got;
	struct err e;

	CHECK_STR(sb.id, ID("1"));
	CHECK_STR(sb.owner, "ann");
	CHECK_STR(sb.image, "base");
	CHECK_STR(sb.image_digest, D1);
	CHECK_STR(sb.runtime, "crun");
	CHECK_STR(sb.host, "h1");
	CHECK_INT(sb.generation, 1);
	CHECK_INT(sb.state, SANDBOX_CREATING);
	CHECK_INT(sb.limits.of[LIMIT_MEMORY_MB], 512);
	CHECK_INT(sb.limits.of[LIMIT_CPU_MILLI], 1000);
	CHECK_INT(sb.limits.of[LIMIT_PIDS], 256);
	CHECK_INT(sb.limits.of[LIMIT_DISK_MB], 2048);
	CHECK(sb.created_ms > 1700000000000);
	CHECK_INT(sb.version, 1);
	CHECK_STR(sb.reason, "");
	CHECK_INT(raw(w.sql, "SELECT extract(epoch FROM deadline_at - created_at)::int "
			     "FROM sandbox"),
		  60);
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &got, &e), &e);
	CHECK_STR(got.image_digest, D1);
	CHECK_INT(got.created_ms, sb.created_ms);
	CHECK_INT(got.limits.of[LIMIT_DISK_MB], 2048);
}

TEST(an_intent_that_cannot_be_is_refused)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox sb = { .id = "untouched" };
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_ERR(try_insert(w.s, ID("1"), "ann", "base", &sb, &e), &e, ERR_CONFLICT);
	CHECK_ERR(try_insert(w.s, ID("2"), "ann", "nope", &sb, &e), &e, ERR_NOT_FOUND);
	CHECK_STR(e.msg, "no image \"nope\"");
	CHECK_ERR(try_insert(w.s, ID("2"), "", "base", &sb, &e), &e, ERR_INVALID);
	CHECK_ERR(try_insert(w.s, ID("2"),
			     "0123456789012345678901234567890123456789012345678901234567890123",
			     "base", &sb, &e),
		  &e, ERR_INVALID);
	CHECK_ERR(try_insert(w.s, ID("2"), "\xff\xfe", "base", &sb, &e), &e, ERR_INVALID);
	CHECK_STR(sb.id, "untouched");
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 1);
}

TEST(somebody_elses_sandbox_is_not_there)
{
	cleanup(world_done) struct world w = world_make();
	struct tombstone t;
	struct sandbox sb;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_ERR(store_sandbox_get(w.s, "bob", ID("1"), &sb, &e), &e, ERR_NOT_FOUND);
	CHECK_ERR(store_sandbox_get(w.s, "", ID("1"), &sb, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e);
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	CHECK_OK(store_sandbox_erase(w.s, ENDING(ID("1"), 1, "{}"), &t, &e), &e);
	CHECK_ERR(store_sandbox_get(w.s, "bob", ID("1"), &sb, &e), &e, ERR_NOT_FOUND);
	CHECK_ERR(store_tombstone_get(w.s, "bob", ID("1"), &t, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(store_tombstone_get(w.s, "ann", ID("1"), &t, &e), &e);
}

TEST(lists_come_in_pages_and_by_owner)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_page page = { .owner = "ann", .after = "", .limit = 2 };
	struct seen seen = { 0 };
	struct err e;

	add(w.s, ID("3"), "ann");
	add(w.s, ID("1"), "ann");
	add(w.s, ID("2"), "bob");
	add(w.s, ID("4"), "ann");
	CHECK_OK(store_sandbox_list(w.s, &page, on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 2);
	CHECK_STR(seen.rows[0].id, ID("1"));
	CHECK_STR(seen.rows[1].id, ID("3"));
	page.after = seen.rows[1].id;
	CHECK_OK(store_sandbox_list(w.s, &page, on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 3);
	CHECK_STR(seen.rows[2].id, ID("4"));

	seen.count = 0;
	page = (struct sandbox_page){ .after = "", .limit = STORE_LIST_MAX };
	CHECK_OK(store_sandbox_list(w.s, &page, on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 4);
	page.limit = 0;
	CHECK_ERR(store_sandbox_list(w.s, &page, on_row, &seen, &e), &e, ERR_INVALID);
	page.limit = STORE_LIST_MAX + 1;
	CHECK_ERR(store_sandbox_list(w.s, &page, on_row, &seen, &e), &e, ERR_INVALID);
}

TEST(a_move_happens_only_from_what_was_seen)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_move m = {
		.id = ID("1"),
		.generation = 1,
		.version = 1,
		.from = SANDBOX_CREATING,
		.to = SANDBOX_READY,
	};
	struct sandbox sb;
	struct err e;

	add(w.s, ID("1"), "ann");
	m.generation = 2;
	CHECK_ERR(store_sandbox_move(w.s, &m, &sb, &e), &e, ERR_CONFLICT);
	m.generation = 1;
	m.version = 2;
	CHECK_ERR(store_sandbox_move(w.s, &m, &sb, &e), &e, ERR_CONFLICT);
	m.version = 1;
	CHECK_OK(store_sandbox_move(w.s, &m, &sb, &e), &e);
	CHECK_INT(sb.state, SANDBOX_READY);
	CHECK_INT(sb.version, 2);
	CHECK_INT(raw(w.sql, "SELECT count(deadline_at) FROM sandbox"), 0);
	CHECK_ERR(store_sandbox_move(w.s, &m, &sb, &e), &e, ERR_CONFLICT);
	m.version = 0;
	CHECK_ERR(store_sandbox_move(w.s, &m, &sb, &e), &e, ERR_CONFLICT);
	m.id = ID("9");
	CHECK_ERR(store_sandbox_move(w.s, &m, &sb, &e), &e, ERR_CONFLICT);
}

TEST(who_waits_must_have_a_deadline_and_gone_is_no_move)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_move m = {
		.id = ID("1"),
		.generation = 1,
		.from = SANDBOX_CREATING,
		.to = SANDBOX_DELETING,
	};
	struct sandbox sb;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_ERR(store_sandbox_move(w.s, &m, &sb, &e), &e, ERR_INVALID);
	CHECK_ERR(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_GONE, &e), &e, ERR_INVALID);
}

TEST(a_reason_is_cut_not_refused)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_move m = {
		.id = ID("1"),
		.generation = 1,
		.from = SANDBOX_CREATING,
		.to = SANDBOX_FAILED,
	};
	struct sandbox sb;
	char reason[400];
	struct err e;

	add(w.s, ID("1"), "ann");
	memset(reason, 'x', sizeof(reason));
	memcpy(reason + 198, "\xc3\xa9", 2); /* the limit is in the middle of it */
	reason[399] = '\0';
	m.reason = reason;
	CHECK_OK(store_sandbox_move(w.s, &m, &sb, &e), &e);
	CHECK_INT(strlen(sb.reason), 198);
	m.from = SANDBOX_FAILED;
	m.reason = "said \xff\xfe";
	CHECK_OK(store_sandbox_move(w.s, &m, &sb, &e), &e);
	CHECK_STR(sb.reason, "said ");
}

static void *move_to_ready(void *arg)
{
	struct store *s = another();
	atomic_int *won = arg;
	struct err e = { 0 };

	if (try_move(s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e) == 0)
		atomic_fetch_add(won, 1);
	else
		CHECK_INT(e.code, ERR_CONFLICT);
	store_close(s);
	return NULL;
}

TEST(of_many_who_move_one_wins)
{
	cleanup(world_done) struct world w = world_make();
	atomic_int won = 0;

	add(w.s, ID("1"), "ann");
	in_threads(move_to_ready, &won);
	CHECK_INT(won, 1);
	CHECK_INT(raw(w.sql, "SELECT version FROM sandbox"), 2);
}

TEST(erasing_leaves_the_proof_and_can_be_repeated)
{
	cleanup(world_done) struct world w = world_make();
	struct tombstone t = { 0 };
	struct sandbox sb;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_ERR(store_sandbox_erase(w.s, ENDING(ID("1"), 1, "{}"), &t, &e), &e, ERR_CONFLICT);
	CHECK_ERR(store_sandbox_erase(w.s, ENDING(ID("9"), 1, "{}"), &t, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	CHECK_ERR(store_sandbox_erase(w.s, ENDING(ID("1"), 2, "{}"), &t, &e), &e, ERR_CONFLICT);
	CHECK_OK(store_sandbox_erase(w.s, ENDING(ID("1"), 1, "{\"disk\":\"absent\"}"), &t, &e), &e);
	CHECK_STR(t.id, ID("1"));
	CHECK_STR(t.owner, "ann");
	CHECK_STR(t.host, "h1");
	CHECK_INT(t.generation, 1);
	CHECK(t.deleted_ms > 0);
	CHECK_OK(store_sandbox_erase(w.s, ENDING(ID("1"), 1, "{\"another\":1}"), &t, &e), &e);
	CHECK_STR(t.receipt, "{\"disk\":\"absent\"}");
	CHECK_OK(store_tombstone_get(w.s, NULL, ID("1"), &t, &e), &e);
	CHECK_STR(t.receipt, "{\"disk\":\"absent\"}");
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &sb, &e), &e);
	CHECK_INT(sb.state, SANDBOX_GONE);
	CHECK_INT(sb.generation, 1);
	CHECK_STR(sb.host, "h1");
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 0);
}

static void *erase(void *arg)
{
	struct store *s = another();
	struct tombstone t;
	struct err e;

	(void)arg;
	CHECK_OK(store_sandbox_erase(s, ENDING(ID("1"), 1, "{}"), &t, &e), &e);
	CHECK_STR(t.id, ID("1"));
	store_close(s);
	return NULL;
}

TEST(many_may_erase_at_once)
{
	cleanup(world_done) struct world w = world_make();
	struct err e;

	for (int round = 0; round < 5; round++) {
		raw(w.sql, "DELETE FROM tombstone");
		raw(w.sql, "DELETE FROM sandbox_event"); /* it remembers an id for ever */
		add(w.s, ID("1"), "ann");
		CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
		in_threads(erase, NULL);
		CHECK_INT(raw(w.sql, "SELECT count(*) FROM tombstone"), 1);
	}
}

TEST(a_receipt_has_a_limit)
{
	cleanup(world_done) struct world w = world_make();
	char receipt[STORE_RECEIPT_MAX + 2];
	struct tombstone t;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	memset(receipt, 'x', sizeof(receipt));
	receipt[STORE_RECEIPT_MAX + 1] = '\0';
	CHECK_ERR(store_sandbox_erase(w.s, ENDING(ID("1"), 1, receipt), &t, &e), &e, ERR_INVALID);
	receipt[STORE_RECEIPT_MAX] = '\0';
	CHECK_OK(store_sandbox_erase(w.s, ENDING(ID("1"), 1, receipt), &t, &e), &e);
	CHECK_STR(t.receipt, receipt);
}

TEST(a_host_gets_all_of_its_own)
{
	cleanup(world_done) struct world w = world_make();
	struct seen seen = { 0 };
	struct err e;

	add(w.s, ID("1"), "ann");
	add(w.s, ID("2"), "bob");
	add(w.s, ID("3"), "bob");
	raw(w.sql, "UPDATE sandbox SET host = 'h2' WHERE id = '" ID("3") "'");
	CHECK_OK(try_move(w.s, ID("2"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	CHECK_OK(store_sandboxes_of_host(w.s, "h1", on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 2);
	CHECK_STR(seen.rows[0].id, ID("1"));
	CHECK_INT(seen.rows[1].state, SANDBOX_READY);
}

static void *take_due(void *arg)
{
	struct sandbox_due due = { .host = "h1", .limit = 8, .again_ms = 60000 };
	struct store *s = another();
	struct seen seen = { 0 };
	struct err e;

	CHECK_OK(store_sandboxes_due(s, &due, on_row, &seen, &e), &e);
	atomic_fetch_add((atomic_int *)arg, seen.count);
	store_close(s);
	return NULL;
}

TEST(what_is_due_is_given_out_once)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_due due = { .host = "h1", .limit = 1, .again_ms = 0 };
	struct seen seen = { 0 };
	atomic_int taken = 0;
	struct err e;

	add(w.s, ID("1"), "ann");
	add(w.s, ID("2"), "ann");
	add(w.s, ID("3"), "ann");
	CHECK_OK(store_sandboxes_due(w.s, &due, on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 0);
	raw(w.sql, "UPDATE sandbox SET deadline_at = now() - interval '1s' "
		   "WHERE id <> '" ID("3") "'");
	raw(w.sql, "UPDATE sandbox SET deadline_at = now() - interval '9s' "
		   "WHERE id = '" ID("2") "'");
	CHECK_OK(store_sandboxes_due(w.s, &due, on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 1);
	CHECK_STR(seen.rows[0].id, ID("2")); /* the oldest */
	CHECK_INT(seen.rows[0].version, 1);
	in_threads(take_due, &taken);
	CHECK_INT(taken, 2);
	due.limit = 0;
	CHECK_ERR(store_sandboxes_due(w.s, &due, on_row, &seen, &e), &e, ERR_INVALID);
}

static void count_row(const struct sandbox *sb, void *arg)
{
	(void)sb;
	++*(int *)arg;
}

/* 120 sandboxes of one host, all of them due. */
static void add_due(struct world *w)
{
	add(w->s, ID("1"), "ann");
	raw(w->sql, "CREATE TEMP TABLE copy AS SELECT * FROM sandbox");
	raw(w->sql, "UPDATE copy SET deadline_at = now() - interval '1s'");
	raw(w->sql, "DELETE FROM sandbox");
	raw(w->sql, "UPDATE copy SET id = 'sb_c1_x' || id");
	for (int i = 0; i < 120; i++) {
		raw(w->sql, "UPDATE copy SET id = 'sb_c1_' || left(md5(id), 20)");
		raw(w->sql, "INSERT INTO sandbox SELECT * FROM copy");
	}
}

TEST(of_120_that_are_due_50_are_taken_then_50_then_20)
{
	static const int batches[] = { 50, 50, 20, 0 };
	cleanup(world_done) struct world w = world_make();
	struct sandbox_due due = { .host = "h1", .limit = STORE_SWEEP_PAGE, .again_ms = 60000 };
	struct err e;

	add_due(&w);
	for (size_t i = 0; i < array_len(batches); i++) {
		int count = 0;

		CHECK_OK(store_sandboxes_due(w.s, &due, count_row, &count, &e), &e);
		CHECK_INT(count, batches[i]);
	}
}

TEST(a_sweep_reads_all_in_pages_of_50)
{
	cleanup(world_done) struct world w = world_make();
	uint64_t before;
	int count = 0;
	struct err e;

	add_due(&w);
	raw(w.sql, "UPDATE sandbox SET host = 'h2' WHERE id = (SELECT min(id) FROM sandbox)");
	before = store_counts(w.s).transactions;
	CHECK_OK(store_sandboxes_of_host(w.s, "h1", count_row, &count, &e), &e);
	CHECK_INT(count, 119);
	CHECK_INT(store_counts(w.s).transactions - before, 3);
}

TEST(strings_are_values_never_sql)
{
	static const char *const evil[] = {
		"'; DROP TABLE sandbox; --",
		"x' OR '1'='1",
		"$1",
		"\\'; SELECT 1",
		"%s%n",
		"\"\n\t\x01",
		"a\xc3\xa9\xe2\x82\xac",
	};
	cleanup(world_done) struct world w = world_make();
	struct sandbox sb;
	struct err e;

	for (size_t i = 0; i < array_len(evil); i++) {
		struct sandbox_page page = { .owner = evil[i], .after = evil[i], .limit = 8 };
		struct seen seen = { 0 };
		char id[SANDBOX_ID_SIZE];

		snprintf(id, sizeof(id), "sb_c1_%020zu", i);
		CHECK_ERR(store_sandbox_get(w.s, evil[i], evil[i], &sb, &e), &e, ERR_NOT_FOUND);
		CHECK_ERR(try_insert(w.s, ID("1"), "ann", evil[i], &sb, &e), &e, ERR_NOT_FOUND);
		CHECK_OK(try_insert(w.s, id, evil[i], "base", &sb, &e), &e);
		CHECK_OK(store_sandbox_get(w.s, evil[i], id, &sb, &e), &e);
		CHECK_STR(sb.owner, evil[i]);
		page.after = "zz"; /* behind all ids */
		CHECK_OK(store_sandbox_list(w.s, &page, on_row, &seen, &e), &e);
		CHECK_INT(seen.count, 0);
		page.after = "";
		CHECK_OK(store_sandbox_list(w.s, &page, on_row, &seen, &e), &e);
		CHECK_INT(seen.count, 1);
	}
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), array_len(evil));
}

/* --- ids that are none --- */

/* Now and then a real one with one character changed, cut or added; otherwise anything. */
static void random_id(unsigned *seed, char out[32])
{
	static const char any[] = "sb_c1_09azvwAZ-./ '\"\\%$;{}_";
	size_t len = 1 + (size_t)rand_r(seed) % 30; /* the table itself refuses an empty one */

	snprintf(out, 32, "sb_c1_0123456789abcdefghij");
	if (rand_r(seed) % 2)
		len = 26;
	for (size_t i = 0; i < len; i++)
		if (len != 26 || rand_r(seed) % 26 == 0)
			out[i] = any[(size_t)rand_r(seed) % (sizeof(any) - 1)];
	out[len] = '\0';
}

static void set_column(struct world *w, const char *column, const char *value)
{
	char *quoted = PQescapeLiteral(w->sql, value, strlen(value)), sql[200];

	snprintf(sql, sizeof(sql), "UPDATE sandbox SET %s = %s WHERE owner = 'ann'",
		 column, quoted);
	PQfreemem(quoted);
	raw(w->sql, sql);
}

TEST(a_record_whose_id_is_none_is_never_handed_out)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_page all = { .after = "", .limit = 8 };
	struct sandbox sb = { 0 };
	struct err e, ignored;
	unsigned seed = 7;
	int good = 0, bad = 0;

	add(w.s, ID("1"), "ann");
	add(w.s, ID("2"), "bob");
	for (int i = 0; i < 1000; i++) {
		struct seen seen = { 0 };
		char id[32];
		int listed;

		random_id(&seed, id);
		set_column(&w, "id", id);
		listed = store_sandbox_list(w.s, &all, on_row, &seen, &e);
		if (sandbox_id_check(id, &ignored) == 0) {
			CHECK_OK(listed, &e);
			CHECK_INT(seen.count, 2);
			good++;
			continue;
		}
		bad++;
		CHECK_INT(listed, 1);
		CHECK_INT(e.code, ERR_INTERNAL);
		CHECK(strstr(e.msg, "cannot be a id"));
		CHECK_INT(seen.count, 1); /* the others are */
		CHECK_STR(seen.rows[0].owner, "bob");
		CHECK_ERR(store_sandbox_get(w.s, NULL, id, &sb, &e), &e, ERR_INTERNAL);
		CHECK_STR(sb.id, "");
		CHECK_ERR(try_insert(w.s, id, "eve", "base", &sb, &e), &e, ERR_INVALID);
	}
	CHECK(good > 50 && bad > 500);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 2); /* none was written */
	set_column(&w, "id", ID("1"));
	set_column(&w, "identity_key", "no key");
	CHECK_ERR(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e, ERR_INTERNAL);
	CHECK(strstr(e.msg, "cannot be a identity_key"));
}

static void last_row(const struct sandbox *sb, void *arg)
{
	memcpy(arg, sb->id, sizeof(sb->id));
}

/* Of 120, every row of the second page, the last of the first and one of the third. */
static void damage(struct world *w)
{
	raw(w->sql, "UPDATE sandbox SET identity_key = 'no key' || id WHERE id IN "
		    "(SELECT id FROM sandbox ORDER BY id OFFSET 49 LIMIT 51)");
	raw(w->sql, "UPDATE sandbox SET id = id || 'z' WHERE id = "
		    "(SELECT id FROM sandbox ORDER BY id OFFSET 110 LIMIT 1)");
}

TEST(records_that_cannot_be_read_stop_no_other)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_due due = { .host = "h1", .limit = STORE_LIST_MAX, .again_ms = 60000 };
	struct sandbox_page page = { .after = "", .limit = 50 };
	char last[SANDBOX_ID_SIZE] = "";
	int count = 0;
	struct err e;

	add_due(&w);
	damage(&w);
	CHECK_INT(store_sandboxes_of_host(w.s, "h1", count_row, &count, &e), 52);
	CHECK_INT(count, 68);
	CHECK(strstr(e.msg, "cannot be a identity_key")); /* the first of them */
	count = 0;
	CHECK_INT(store_sandbox_list(w.s, &page, count_row, &count, &e), 51);
	CHECK_INT(count, 50); /* the limit is of those that are handed over */
	count = 0;
	page.limit = 49;
	CHECK_OK(store_sandbox_list(w.s, &page, last_row, last, &e), &e);
	page.limit = 1;
	page.after = last;
	CHECK_INT(store_sandbox_list(w.s, &page, count_row, &count, &e), 51);
	CHECK_INT(count, 1);
	count = 0;
	page.limit = 100;
	CHECK_INT(store_sandbox_list(w.s, &page, count_row, &count, &e), 52);
	CHECK_INT(count, 19); /* all that are left */
	count = 0;
	CHECK_INT(store_sandboxes_due(w.s, &due, count_row, &count, &e), 52);
	CHECK_INT(count, 68);
}

/* A page of deletions that cannot be read, and one behind them that can. */
TEST(damaged_records_do_not_fill_every_page_of_what_is_due)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_due due = { .host = "h1", .limit = 50, .again_ms = 60000 };
	uint64_t overdue = 0;
	int count = 0;
	struct err e;

	add_due(&w);
	damage(&w);
	raw(w.sql, "UPDATE sandbox SET state = 'deleting', "
		   "deadline_at = now() - interval '9s' WHERE identity_key <> ''");
	CHECK_INT(store_sandboxes_due(w.s, &due, count_row, &count, &e), 50);
	CHECK_INT(count, 0);
	CHECK_OK(store_sandboxes_due(w.s, &due, count_row, &count, &e) < 0 ? -1 : 0, &e);
	CHECK(count >= 48);
	CHECK_OK(store_sandboxes_overdue(w.s, "h1", &overdue, &e), &e);
	CHECK_INT(overdue, 20); /* those are in nobody's way: they are counted when they are due */
}

/* --- the ladder of a deletion, and the log --- */

static struct sandbox_move step_of(const struct sandbox *sb, const struct stop *stop,
				   const char *event)
{
	return (struct sandbox_move){
		.id = sb->id,
		.generation = sb->generation,
		.version = sb->version,
		.from = sb->state,
		.to = SANDBOX_DELETING,
		.event = event,
		.attempt = stop->attempt,
		.reason = stop->last_error,
		.stop = stop,
		.deadline_ms = 5000,
	};
}

static struct sandbox climb(struct store *s, const struct sandbox *sb, const struct stop *stop,
			    const char *event)
{
	struct sandbox_move m = step_of(sb, stop, event);
	struct sandbox got;
	struct err e;

	CHECK_OK(store_sandbox_move(s, &m, &got, &e), &e);
	return got;
}

TEST(a_ladder_is_read_as_it_was_written)
{
	cleanup(world_done) struct world w = world_make();
	struct stop stop = {
		.state = STOP_STOPPING,
		.attempts = 2,
		.attempt = 77,
		.rechecks = 3,
		.last_error = "still there",
	};
	struct sandbox sb = add(w.s, ID("1"), "ann"), got;
	struct err e;

	CHECK_INT(sb.stop.state, STOP_NONE);
	sb = climb(w.s, &sb, &stop, "delete");
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &got, &e), &e);
	CHECK_INT(got.stop.state, STOP_STOPPING);
	CHECK_INT(got.stop.attempts, 2);
	CHECK_INT(got.stop.rechecks, 3);
	CHECK_INT(got.stop.attempt, 77);
	CHECK_STR(got.stop.last_error, "still there");
	CHECK_STR(got.reason, "still there");
	CHECK_INT(got.stop.next_ms, got.stop.deadline_ms);
	CHECK_INT(got.stop.next_ms, sb.stop.next_ms);
	CHECK_INT(sb.stop.next_ms - sb.read_ms, 5000);
	CHECK_INT(raw(w.sql, "SELECT count(quarantined_at) FROM sandbox"), 0);
	stop.state = STOP_QUARANTINED;
	sb = climb(w.s, &sb, &stop, "quarantined");
	CHECK_INT(raw(w.sql, "SELECT count(quarantined_at) FROM sandbox"), 1);
	raw(w.sql, "UPDATE sandbox SET quarantined_at = now() - interval '1h'");
	climb(w.s, &sb, &stop, "recheck");
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox WHERE quarantined_at < now() - "
			     "interval '59min'"),
		  1);
}

TEST(of_two_steps_from_one_version_one_is_written)
{
	cleanup(world_done) struct world w = world_make();
	struct stop stop = { .state = STOP_STOPPING, .attempts = 1, .attempt = 7 };
	struct sandbox sb = add(w.s, ID("1"), "ann"), got;
	struct sandbox_move m = step_of(&sb, &stop, "delete");
	struct err e;

	climb(w.s, &sb, &stop, "delete");
	CHECK_ERR(store_sandbox_move(w.s, &m, &got, &e), &e, ERR_CONFLICT);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox_event"), 2);
}

TEST(only_the_attempt_in_flight_erases)
{
	cleanup(world_done) struct world w = world_make();
	struct stop stop = { .state = STOP_STOPPING, .attempts = 1, .attempt = 7 };
	struct sandbox_end end = { .id = ID("1"), .generation = 1, .receipt = "{}" };
	struct sandbox sb = add(w.s, ID("1"), "ann");
	struct tombstone t;
	struct err e;

	climb(w.s, &sb, &stop, "delete");
	CHECK_ERR(store_sandbox_erase(w.s, &end, &t, &e), &e, ERR_CONFLICT);
	end.attempt = 6;
	CHECK_ERR(store_sandbox_erase(w.s, &end, &t, &e), &e, ERR_CONFLICT);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 1);
	end.attempt = 7;
	CHECK_OK(store_sandbox_erase(w.s, &end, &t, &e), &e);
	end.attempt = 6; /* late, and it is gone: the receipt that is there */
	CHECK_OK(store_sandbox_erase(w.s, &end, &t, &e), &e);
}

TEST(a_deletion_that_is_due_keeps_its_time)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_due due = { .host = "h1", .limit = 8, .again_ms = 60000 };
	struct stop stop = { .state = STOP_NEEDED, .attempts = 1 };
	struct sandbox sb = add(w.s, ID("1"), "ann");
	struct seen seen = { 0 };
	struct err e;

	climb(w.s, &sb, &stop, "unknown");
	raw(w.sql, "UPDATE sandbox SET deadline_at = now() - interval '1s'");
	for (int i = 1; i <= 2; i++) {
		CHECK_OK(store_sandboxes_due(w.s, &due, on_row, &seen, &e), &e);
		CHECK_INT(seen.count, i);
	}
	CHECK_INT(seen.rows[0].stop.next_ms, seen.rows[1].stop.next_ms);
	CHECK(seen.rows[0].stop.next_ms < seen.rows[0].read_ms);
}

struct story {
	int count;
	struct sandbox_happening rows[8];
};

static void on_happening(const struct sandbox_happening *h, void *arg)
{
	struct story *story = arg;

	CHECK(story->count < 8);
	story->rows[story->count++] = *h;
}

TEST(every_change_is_told_in_its_own_transaction_and_for_ever)
{
	static const char *const events[] = { "create", "up", "delete", "removed" };
	static const char *const states[] = { "", "creating", "ready", "deleting", "gone" };
	cleanup(world_done) struct world w = world_make();
	struct stop stop = { .state = STOP_STOPPING, .attempts = 1, .attempt = 7 };
	struct sandbox_end end = { .id = ID("1"), .generation = 1, .attempt = 7, .receipt = "{}" };
	uint64_t before = store_counts(w.s).transactions;
	struct sandbox sb = add(w.s, ID("1"), "ann");
	struct sandbox_move up = {
		.id = ID("1"),
		.generation = 1,
		.from = SANDBOX_CREATING,
		.to = SANDBOX_READY,
		.event = "up",
	};
	struct story story = { 0 };
	struct tombstone t;
	struct err e;

	CHECK_OK(store_sandbox_move(w.s, &up, &sb, &e), &e);
	climb(w.s, &sb, &stop, "delete");
	CHECK_OK(store_sandbox_erase(w.s, &end, &t, &e), &e);
	CHECK_INT(store_counts(w.s).transactions - before, 4);
	CHECK_OK(store_sandbox_events(w.s, ID("1"), 0, on_happening, &story, &e), &e);
	CHECK_INT(story.count, 4);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(story.rows[i].seq, i + 1);
		CHECK_STR(story.rows[i].event, events[i]);
		CHECK_STR(story.rows[i].from_state, states[i]);
		CHECK_STR(story.rows[i].to_state, states[i + 1]);
		CHECK_INT(story.rows[i].attempt, i < 2 ? 0 : 7);
		CHECK(story.rows[i].at_ms > 1700000000000);
	}
	CHECK_OK(store_sandbox_events(w.s, ID("1"), 3, on_happening, &story, &e), &e);
	CHECK_INT(story.count, 5);
	CHECK_OK(store_sandbox_events(w.s, ID("9"), 0, on_happening, &story, &e), &e);
	CHECK_INT(story.count, 5);
}

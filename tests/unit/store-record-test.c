/* Names, identities, labels, caps, room and alarms, in a real PostgreSQL. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "store-world.h"
#include "store/incident.h"
#include "store/network.h"
#include "store/policy.h"
#include "store/retention.h"
#include "store/sandbox.h"
#include "test.h"

static struct sandbox_spec spec_of(const char *name, const char *key, const char *labels)
{
	struct sandbox_spec spec = SANDBOX_SPEC_DEFAULT;

	snprintf(spec.image, sizeof(spec.image), "base");
	snprintf(spec.runtime, sizeof(spec.runtime), "crun");
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.identity_key, sizeof(spec.identity_key), "%s", key);
	snprintf(spec.labels, sizeof(spec.labels), "%s", labels);
	return spec;
}

static int put(struct store *s, const char *id, const char *owner, const struct sandbox_spec *spec,
	       const struct placement_host *room, struct err *e)
{
	struct sandbox_intent intent = {
		.id = id,
		.owner = owner,
		.host = "h1",
		.spec = spec,
		.room = room,
		.deadline_ms = 60000,
	};
	struct sandbox sb;

	return store_sandbox_insert(s, &intent, &sb, e);
}

TEST(an_owner_has_one_of_a_name_and_one_of_an_identity)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_spec named = spec_of("web", "", "{}"), known = spec_of("", "ann__1", "{}");
	struct sandbox_search q = { .owner = "ann", .kind = ADDRESS_NAME, .text = "web" };
	struct sandbox sb;
	struct err e;

	CHECK_OK(put(w.s, ID("1"), "ann", &named, NULL, &e), &e);
	CHECK_ERR(put(w.s, ID("2"), "ann", &named, NULL, &e), &e, ERR_CONFLICT);
	CHECK_OK(put(w.s, ID("2"), "bob", &named, NULL, &e), &e);
	CHECK_OK(put(w.s, ID("3"), "ann", &known, NULL, &e), &e);
	CHECK_ERR(put(w.s, ID("4"), "ann", &known, NULL, &e), &e, ERR_CONFLICT);
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e);
	CHECK_STR(sb.id, ID("1"));
	q.owner = NULL;
	q.self = "eve";
	CHECK_ERR(store_sandbox_find(w.s, &q, &sb, &e), &e, ERR_CONFLICT); /* whose? */
	q.self = "bob";
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e);
	CHECK_STR(sb.id, ID("2"));
	q = (struct sandbox_search){ .owner = "ann", .kind = ADDRESS_KEY, .text = "ann__1" };
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e);
	CHECK_STR(sb.id, ID("3"));
	q.text = "ses-2";
	CHECK_ERR(store_sandbox_find(w.s, &q, &sb, &e), &e, ERR_NOT_FOUND);
	q.legacy = "ann__1";
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e);
}

static atomic_int made, refused, next_id;

static void *insert_many(void *arg)
{
	struct store *s = another();
	struct sandbox_spec spec = spec_of("", "", "{}");
	struct placement_host room = { .lease = { .state = HOST_LIVE },
				       .disk_known = true,
				       .disk_free_mb = 1 << 20,
				       .sandboxes_max = 1000 };
	struct err e;
	char id[64];

	(void)arg;
	for (int r = 0; r < RESOURCE_COUNT; r++)
		room.total.of[r] = UINT64_MAX / 1024;
	room.total.of[RESOURCE_MEMORY_MB] = 7 * 512;
	snprintf(spec.cap_subject, sizeof(spec.cap_subject), "ann/user:a");
	spec.cap = arg ? 5 : 1000;
	for (int i = 0; i < 4; i++) {
		snprintf(id, sizeof(id), "sb_c1_%020d", atomic_fetch_add(&next_id, 1));
		if (put(s, id, "ann", &spec, &room, &e) == 0)
			made++;
		else if (e.code == (arg ? ERR_LIMIT : ERR_BUSY))
			refused++;
		else
			test_fail(__FILE__, __LINE__, "%s", e.msg);
	}
	store_close(s);
	return NULL;
}

/* Six at once, four each: exactly as many as there is room for, or the cap allows. */
TEST(many_at_once_never_get_more_than_there_is)
{
	cleanup(world_done) struct world w = world_make();

	made = refused = 0;
	raw(w.sql, "INSERT INTO host (id, version) VALUES ('h1', '') ON CONFLICT DO NOTHING");
	in_threads(insert_many, &w); /* with a cap of 5 */
	CHECK_INT(made, 5);
	CHECK_INT(refused, THREADS * 4 - 5);
	raw(w.sql, "DELETE FROM sandbox");
	made = refused = 0;
	in_threads(insert_many, NULL); /* room for 7 */
	CHECK_INT(made, 7);
	CHECK_INT(refused, THREADS * 4 - 7);
	CHECK_INT(raw(w.sql, "SELECT sum(memory_mb) FROM sandbox"), 7 * 512);
}

TEST(a_choice_is_stored_once)
{
	cleanup(world_done) struct world w = world_make();
	struct agent_session mine = { .identity_key = "ann__1",
				      .org = "acme",
				      .user = "ann",
				      .bot = "b",
				      .choice = { .isolation = POLICY_PER_SESSION,
						  .profile = "small" } };
	struct agent_session other = { .identity_key = "org__1",
				       .choice = { .isolation = POLICY_SHARED,
						   .profile = "standard" } };
	struct agent_session got;
	struct err e;

	CHECK_ERR(store_session_get(w.s, "ann", "s", &got, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(store_session_put(w.s, "ann", "s", &mine, &got, &e), &e);
	CHECK_OK(store_session_put(w.s, "ann", "s", &other, &got, &e), &e);
	CHECK_STR(got.identity_key, "ann__1");
	CHECK_INT(got.choice.isolation, POLICY_PER_SESSION);
	CHECK(got.identified);
	CHECK_STR(got.org, "acme");
	CHECK_STR(got.user, "ann");
	CHECK_STR(got.bot, "b");
	CHECK_OK(store_session_put(w.s, "bob", "s", &other, &got, &e), &e);
	CHECK_STR(got.identity_key, "org__1");
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM agent_session"), 2);
}

static void plan_has(PGconn *sql, const char *query, const char *index)
{
	char text[2048];
	PGresult *res;
	bool found = false, scans = false;

	snprintf(text, sizeof(text), "EXPLAIN %s", query);
	res = PQexec(sql, text);
	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		test_fail(__FILE__, __LINE__, "%s", PQerrorMessage(sql));
	for (int i = 0; i < PQntuples(res); i++) {
		const char *line = PQgetvalue(res, i, 0);

		printf("#   %s\n", line);
		found |= strstr(line, index) != NULL;
		scans |= strstr(line, "Seq Scan") != NULL;
	}
	PQclear(res);
	CHECK(found && !scans);
}

/* A tick among 100,000 sandboxes, none of them due: one probe of one index. */
static void count_event(const struct security_event *ev, void *arg)
{
	(void)ev;
	++*(int *)arg;
}

static int events_of(struct store *s, const char *id)
{
	struct err e;
	int count = 0;

	CHECK_OK(store_security_list(s, id, 0, count_event, &count, &e), &e);
	return count;
}

TEST(refusals_outlive_their_sandbox_for_a_while)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_spec any = spec_of("", "", "{}");
	struct security_event ev = { .kind = "name", .name = "x.example.com", .at_ms = 1000 };
	uint64_t removed = 0;
	bool more;
	struct err e;

	CHECK_OK(put(w.s, ID("1"), "ann", &any, NULL, &e), &e);
	for (int i = 0; i < 2; i++) {
		snprintf(ev.sandbox_id, sizeof(ev.sandbox_id), "%s", i ? ID("9") : ID("1"));
		CHECK_OK(store_security_add(w.s, &ev, &e), &e);
	}
	raw(w.sql, "INSERT INTO incident (hour, kind, source, sandbox_id, detail, first_at, "
		   "last_at, count) SELECT now(), kind, '', '', '', now(), "
		   "now() - age * interval '1 day', 1 "
		   "FROM (VALUES ('old', 100), ('new', 0)) AS v (kind, age)");
	for (int i = 0; i < RETENTION_COUNT; i++) { /* each by its own time, and by no other */
		struct retention_ages ages = { 0 };
		bool security = i >= RETENTION_SECURITY, incidents = i >= RETENTION_INCIDENTS;

		ages.ms[i] = 24L * 3600 * 1000;
		CHECK_OK(store_retention_run(w.s, &ages, &removed, &more, &e), &e);
		CHECK_INT(events_of(w.s, ID("9")), !security);
		CHECK_INT(raw(w.sql, "SELECT count(*) FROM incident"), incidents ? 1 : 2);
	}
	CHECK_INT(events_of(w.s, ID("1")), 1);
	CHECK_INT(removed, 2);
}

struct last_incident {
	uint64_t id;
	struct incident is;
	int rows;
};

static void see_incident(uint64_t id, const struct incident *one, void *arg)
{
	struct last_incident *last = arg;

	if (last->rows++ == 0)
		*last = (struct last_incident){ id, *one, 1 };
}

TEST(incidents_of_an_hour_are_one_row_and_the_oldest_rows_go)
{
	cleanup(world_done) struct world w = world_make();
	struct incident one = { .kind = "bad_key",
				.source = "10.0.0.1",
				.detail = "first",
				.first_ms = 1000,
				.last_ms = 2000,
				.count = 3 };
	struct last_incident last = { 0 };
	struct err e;

	while (raw(w.sql, "SELECT extract(epoch FROM date_trunc('hour', now() + interval '5 s') - "
			  "date_trunc('hour', now()))::int") > 0)
		sleep(1); /* not over the end of an hour */
	CHECK_OK(store_incident_add(w.s, &one, &e), &e);
	one.last_ms = 5000;
	snprintf(one.detail, sizeof(one.detail), "second");
	CHECK_OK(store_incident_add(w.s, &one, &e), &e);
	CHECK_OK(store_incident_list(w.s, 0, see_incident, &last, &e), &e);
	CHECK_INT(last.rows, 1);
	CHECK_INT(last.is.count, 6);
	CHECK(last.is.first_ms == 1000 && last.is.last_ms == 5000);
	CHECK_STR(last.is.detail, "second");
	CHECK_OK(store_incident_trim(w.s, &e), &e);
	last.rows = 0;
	CHECK_OK(store_incident_list(w.s, last.id, see_incident, &last, &e), &e);
	CHECK_INT(last.rows, 0); /* none before the only one */
	(void)raw(w.sql, "INSERT INTO incident (hour, kind, source, sandbox_id, detail, first_at, "
			 "last_at, count) SELECT now(), 'bad_key', i::text, '', '', now(), "
			 "now(), 1 FROM generate_series(1, 10000) i RETURNING 1");
	CHECK_OK(store_incident_trim(w.s, &e), &e);
	CHECK_OK(store_incident_list(w.s, last.id + 1, see_incident, &last, &e), &e);
	CHECK_INT(last.rows, 0); /* the oldest one went */
}

TEST(what_is_going_or_has_nothing_left_frees_its_name_and_identity)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_spec spec = spec_of("web", "ann__1", "{}");
	struct sandbox_search q = { .owner = "ann", .kind = ADDRESS_NAME, .text = "web" };
	struct sandbox sb;
	struct err e;

	/* A create that failed: nothing was kept. */
	CHECK_OK(put(w.s, ID("1"), "ann", &spec, NULL, &e), &e);
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_FAILED, &e), &e);
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e); /* as long as there is no other */
	CHECK(sb.failed_ms > 0 && !sb.files_kept && !sandbox_holds_name(&sb));
	CHECK_OK(put(w.s, ID("2"), "ann", &spec, NULL, &e), &e);
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e);
	CHECK_STR(sb.id, ID("2"));

	/* One that failed later has its files, and keeps both. */
	CHECK_OK(try_move(w.s, ID("2"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	CHECK_OK(try_move(w.s, ID("2"), SANDBOX_READY, SANDBOX_FAILED, &e), &e);
	CHECK_ERR(put(w.s, ID("3"), "ann", &spec, NULL, &e), &e, ERR_CONFLICT);
	CHECK_OK(try_move(w.s, ID("2"), SANDBOX_FAILED, SANDBOX_WAKING, &e), &e);
	CHECK_OK(try_move(w.s, ID("2"), SANDBOX_WAKING, SANDBOX_READY, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("2"), &sb, &e), &e);
	CHECK(sb.failed_ms > 0 && sb.files_kept); /* that it failed is still told */

	CHECK_OK(try_move(w.s, ID("2"), SANDBOX_READY, SANDBOX_DELETING, &e), &e);
	CHECK_OK(put(w.s, ID("3"), "ann", &spec, NULL, &e), &e);
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e);
	CHECK_STR(sb.id, ID("3"));
	q = (struct sandbox_search){ .self = "eve", .kind = ADDRESS_KEY, .text = "ann__1" };
	CHECK_OK(store_sandbox_find(w.s, &q, &sb, &e), &e); /* an admin, too: they are all ann's */
	CHECK_STR(sb.id, ID("3"));
}

TEST(alarms_of_100000_sandboxes_cost_one_index_probe_per_tick)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_due due = { .host = "h1", .limit = 50, .again_ms = 1000 };
	struct seen seen = { 0 };
	struct err e;
	long before, after;

	raw(w.sql, "INSERT INTO sandbox (id, owner, image, image_digest, runtime, host, "
		   "generation, state, memory_mb, cpu_milli, pids, disk_mb, deadline_at, labels) "
		   "SELECT 'sb_c1_' || lpad(n::text, 20, '0'), 'ann', 'base', 'd', 'crun', "
		   "'h' || n % 20, 1, 'ready', 1, 1, 1, 1, now() + interval '1 hour', "
		   "CASE WHEN n % 1000 = 0 THEN jsonb_build_object('repo', n::text) ELSE '{}' END "
		   "FROM generate_series(1, 100000) n");
	raw(w.sql, "ANALYZE sandbox");
	plan_has(w.sql, "SELECT id FROM sandbox WHERE host = 'h1' AND deadline_at <= now() "
			"ORDER BY deadline_at LIMIT 50 FOR UPDATE SKIP LOCKED",
		 "sandbox_deadline");
	plan_has(w.sql, "SELECT id FROM sandbox WHERE labels <> '{}' "
			"AND labels @> '{\"repo\":\"5000\"}'",
		 "sandbox_labels");
	plan_has(w.sql, "SELECT id FROM sandbox WHERE name = 'web' AND name <> ''", "sandbox_name");
	CHECK_OK(store_sandboxes_due(w.s, &due, on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 0);
	raw(w.sql, "UPDATE sandbox SET deadline_at = now() "
		   "WHERE id = 'sb_c1_00000000000000000021'");
	before = raw(w.sql, "SELECT pg_stat_force_next_flush(); "
			    "SELECT coalesce(seq_tup_read, 0) FROM pg_stat_user_tables "
			    "WHERE relname = 'sandbox'");
	CHECK_OK(store_sandboxes_due(w.s, &due, on_row, &seen, &e), &e);
	CHECK_INT(seen.count, 1);
	CHECK_STR(seen.rows[0].id, "sb_c1_00000000000000000021");
	after = raw(w.sql, "SELECT pg_stat_clear_snapshot(); "
			   "SELECT coalesce(seq_tup_read, 0) FROM pg_stat_user_tables "
			   "WHERE relname = 'sandbox'");
	CHECK_INT(after, before); /* nobody read the table from its start to its end */
}

TEST(uses_are_written_and_alarms_moved_only_if_nothing_else_happened)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox sb = add(w.s, ID("1"), "ann"), got;
	struct sandbox_used used[2] = { { .ago_ms = 0, .busy_ago_ms = 5000 }, { .id = ID("9") } };
	struct err e;

	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	snprintf(used[0].id, sizeof(used[0].id), "%s", sb.id);
	CHECK_OK(store_sandboxes_used(w.s, used, 2, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &got, &e), &e);
	CHECK(got.busy_ms > 0 && got.last_used_ms - got.busy_ms >= 4999);
	used[0].ago_ms = 3600000; /* old news */
	used[0].busy_ago_ms = 0;
	CHECK_OK(store_sandboxes_used(w.s, used, 1, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &sb, &e), &e);
	CHECK_INT(sb.last_used_ms, got.last_used_ms);
	CHECK_INT(sb.busy_ms, 0);
	CHECK_OK(store_sandbox_rearm(w.s, ID("1"), sb.version + 1, 1000, &e), &e);
	CHECK_INT(raw(w.sql, "SELECT count(deadline_at) FROM sandbox"), 0);
	CHECK_OK(store_sandbox_rearm(w.s, ID("1"), sb.version, 1000, &e), &e);
	CHECK_INT(raw(w.sql, "SELECT count(deadline_at) FROM sandbox"), 1);
}

static int put_with_network(struct store *s, const char *id, const struct sandbox_spec *spec,
			    struct err *e)
{
	struct sandbox_intent intent = {
		.id = id,
		.owner = "ann",
		.host = "h1",
		.spec = spec,
		.deadline_ms = 60000,
		.network = "{\"mode\":\"allow\"}",
	};
	struct sandbox sb;

	return store_sandbox_insert(s, &intent, &sb, e);
}

static void erase(struct store *s, const char *id)
{
	struct tombstone t;
	struct err e;

	CHECK_OK(try_move(s, id, SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	CHECK_OK(store_sandbox_erase(s, ENDING(id, 1, "{}"), &t, &e), &e);
}

TEST(a_refused_create_leaves_no_network_policy)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_spec spec = spec_of("web", "", "{}"), nowhere = spec, capped = spec;
	struct err e;
	char id[64];

	CHECK_OK(put_with_network(w.s, ID("1"), &spec, &e), &e);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox_network"), 1);
	snprintf(nowhere.image, sizeof(nowhere.image), "none");
	snprintf(capped.cap_subject, sizeof(capped.cap_subject), "ann/user:ann");
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "sb_c1_0000000000000000%04d", 1000 + i);
		CHECK_ERR(put_with_network(w.s, id, &nowhere, &e), &e, ERR_NOT_FOUND);
		CHECK_ERR(put_with_network(w.s, id, &spec, &e), &e, ERR_CONFLICT);
		CHECK_ERR(put_with_network(w.s, id, &capped, &e), &e, ERR_LIMIT);
	}
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox_network"), 1);
}

TEST(the_record_has_the_mode_of_the_policy)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_spec one = spec_of("one", "", "{}");
	struct network_put put = { ID("1"), "ann", "{ \"mode\": \"open\" }", false };
	struct network_row *row = xcalloc(1, sizeof(*row));
	struct sandbox sb = { 0 };
	struct err e;

	CHECK_OK(put_with_network(w.s, ID("1"), &one, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &sb, &e), &e);
	CHECK_STR(sb.network_mode, "allow");
	CHECK_OK(store_network_put(w.s, &put, row, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &sb, &e), &e);
	CHECK_STR(sb.network_mode, "open");
	erase(w.s, ID("1"));
	CHECK_OK(store_sandbox_get(w.s, "ann", ID("1"), &sb, &e), &e);
	CHECK_STR(sb.network_mode, "none");
	free(row);
}

TEST(a_network_policy_goes_with_its_sandbox_and_what_was_counted_stays)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_spec one = spec_of("one", "", "{}"), two = spec_of("two", "", "{}");
	struct network_use use = { .connections = 3, .bytes_out = 5 };
	struct err e;

	CHECK_OK(put_with_network(w.s, ID("1"), &one, &e), &e);
	CHECK_OK(put_with_network(w.s, ID("2"), &two, &e), &e);
	CHECK_OK(store_network_used(w.s, ID("2"), "ann", &use, &e), &e);
	erase(w.s, ID("1"));
	erase(w.s, ID("2"));
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox_network"), 1);
	CHECK_INT(raw(w.sql, "SELECT connections FROM sandbox_network WHERE policy NOT LIKE "
			     "'%allow%' AND sandbox_id = '" ID("2") "'"),
		  3);
}

#define OLD "now() - interval '100 days'"

/* Everything there is of a sandbox besides its record, 100 days old. */
static void add_past(struct world *w, const char *id, const char *key)
{
	char sql[2048];

	snprintf(sql, sizeof(sql),
		 "INSERT INTO sandbox_event VALUES ('%1$s', 1000, " OLD ", 'x', '', '', '', 0); "
		 "INSERT INTO usage VALUES ('%1$s', 1, 'ann', 'h1', '', 1, 1, 1, 1, 1, 1, 0, " OLD
		 "); INSERT INTO sandbox_network (sandbox_id, owner, policy, changed_at) "
		 "VALUES ('%1$s', 'ann', '{}', " OLD "); "
		 "INSERT INTO idempotency (owner, key, request, body_hash, sandbox_id, created_at) "
		 "VALUES ('ann', '%1$s', 'x', repeat('a', 64), '%1$s', " OLD "); "
		 "INSERT INTO agent_session VALUES ('ann', '%2$s', '%2$s', 'per_session', 'p', '', "
		 "0, " OLD "); INSERT INTO cap VALUES ('%2$s', " OLD ")",
		 id, key);
	raw(w->sql, sql);
}

static long rows(struct world *w)
{
	return raw(w->sql, "SELECT (SELECT count(*) FROM sandbox_event WHERE seq = 1000) + "
			   "(SELECT count(*) FROM usage) + (SELECT count(*) FROM sandbox_network) "
			   "+ (SELECT count(*) FROM idempotency) + (SELECT count(*) FROM "
			   "agent_session) + (SELECT count(*) FROM cap) + "
			   "(SELECT count(*) FROM tombstone)");
}

static uint64_t remove_past(struct world *w, uint64_t age_ms)
{
	struct retention_ages ages;
	uint64_t removed = 0;
	bool more = true;
	struct err e;

	for (int i = 0; i < RETENTION_COUNT; i++)
		ages.ms[i] = age_ms;
	for (int i = 0; i < 10 && more; i++) {
		more = false;
		CHECK_OK(store_retention_run(w->s, &ages, &removed, &more, &e), &e);
	}
	CHECK(!more);
	return removed;
}

TEST(what_is_old_is_removed_and_only_what_is_over_and_proven)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox_spec spec = spec_of("", "liv__ing", "{}");
	struct err e;

	snprintf(spec.cap_subject, sizeof(spec.cap_subject), "liv__ing");
	spec.cap = 9;
	CHECK_OK(put(w.s, ID("1"), "ann", &spec, NULL, &e), &e); /* it is still being made */
	raw(w.sql, "DELETE FROM cap");
	raw(w.sql, "INSERT INTO host (id, version) VALUES ('h1', '1'), ('lost', '1')");
	raw(w.sql, "UPDATE host SET lost_at = now() WHERE id = 'lost'");
	add_past(&w, ID("1"), "liv__ing");
	add_past(&w, ID("2"), "gone");
	raw(w.sql, "INSERT INTO tombstone VALUES ('a', 'ann', 'h1', 1, " OLD ", '')");
	raw(w.sql, "INSERT INTO tombstone VALUES ('b', 'ann', 'lost', 1, " OLD ", '')");
	CHECK_INT(rows(&w), 14);
	CHECK_INT(remove_past(&w, 0), 0); /* for ever */
	CHECK_INT(remove_past(&w, 200LL * 24 * 3600 * 1000), 0);
	CHECK_INT(remove_past(&w, 3600 * 1000), 8); /* the gone one's 7, an event of the living */
	CHECK_INT(rows(&w), 6);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM usage WHERE sandbox_id = '" ID("1") "'"), 1);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM idempotency WHERE key = '" ID("1") "'"), 1);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM tombstone WHERE host = 'lost'"), 1);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM agent_session WHERE session = 'liv__ing'"), 1);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM cap WHERE subject = 'liv__ing'"), 1);
}

TEST(what_is_old_is_removed_in_batches_by_one_host_at_a_time)
{
	cleanup(world_done) struct world w = world_make();
	struct retention_ages ages = { .ms = { [RETENTION_EVENTS] = 1000 } };
	uint64_t removed = 0;
	bool more = false;
	struct err e;

	raw(w.sql, "INSERT INTO sandbox_event SELECT 'x', n, " OLD ", 'x', '', '', '', 0 "
		   "FROM generate_series(1, 1200) n");
	raw(w.sql, "BEGIN");
	raw(w.sql, "SELECT pg_advisory_xact_lock(762093841)");
	CHECK_OK(store_retention_run(w.s, &ages, &removed, &more, &e), &e);
	CHECK_INT(removed, 0); /* another is at it */
	raw(w.sql, "COMMIT");
	CHECK_OK(store_retention_run(w.s, &ages, &removed, &more, &e), &e);
	CHECK_INT(removed, STORE_RETENTION_BATCH);
	CHECK(more);
	CHECK_INT(remove_past(&w, 1000), 1200 - STORE_RETENTION_BATCH);
}

#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

#include "store-world.h"
#include "store/host.h"
#include "store/key.h"
#include "test.h"

#define HASH  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH2 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* --- the connection --- */

TEST(a_wrong_conninfo_and_a_missing_server_are_told_apart)
{
	struct store *s = NULL;
	struct err e;

	CHECK_ERR(store_open("no such thing", &s, &e), &e, ERR_INVALID);
	CHECK_ERR(store_open("host=/nonexistent", &s, &e), &e, ERR_BUSY);
	CHECK(strstr(e.msg, "the database cannot be reached"));
	CHECK(!strchr(e.msg, '\n'));
	CHECK(strstr(err_remediation(&e), "PostgreSQL"));
	CHECK(!s);
}

TEST(a_killed_connection_is_made_again_unnoticed)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox sb;
	uint64_t before;
	struct err e;

	add(w.s, ID("1"), "ann");
	before = store_counts(w.s).connects;
	for (int i = 0; i < 3; i++) {
		CHECK_INT(raw(w.sql, "SELECT count(pg_terminate_backend(pid, 5000)) FROM "
				     "pg_stat_activity WHERE application_name = 'berthd' "
				     "AND datname = current_database()"),
			  1);
		CHECK_OK(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e);
	}
	CHECK_INT(store_counts(w.s).connects - before, 3);
}

static void *get_slowly(void *arg)
{
	struct store *s = arg;
	struct sandbox sb;
	static struct err e;

	CHECK_ERR(store_sandbox_get(s, NULL, ID("1"), &sb, &e), &e, ERR_BUSY);
	return &e;
}

TEST(a_connection_lost_during_a_call_is_unknown_not_absent)
{
	cleanup(world_done) struct world w = world_make();
	struct sandbox sb;
	pthread_t thread;
	struct err e;

	add(w.s, ID("1"), "ann");
	raw(w.sql, "BEGIN; LOCK TABLE sandbox");
	CHECK_INT(pthread_create(&thread, NULL, get_slowly, w.s), 0);
	wait_for_a_waiter(w.sql);
	raw(w.sql, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
		   "WHERE application_name = 'berthd' AND datname = current_database()");
	CHECK_INT(pthread_join(thread, NULL), 0);
	raw(w.sql, "COMMIT");
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e);
}

TEST(a_stopped_server_is_busy_and_comes_back)
{
	cleanup(world_done) struct world w = world_make();
	struct tombstone t;
	struct sandbox sb;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_INT(system(getenv("BERTH_TEST_PG_STOP")), 0);
	CHECK_ERR(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e, ERR_BUSY);
	CHECK(strstr(e.msg, "the database cannot be reached"));
	CHECK_ERR(store_tombstone_get(w.s, NULL, ID("1"), &t, &e), &e, ERR_BUSY);
	CHECK_ERR(store_ping(w.s, &e), &e, ERR_BUSY);
	CHECK_ERR(store_migrate(w.s, &e), &e, ERR_BUSY);
	CHECK_INT(system(getenv("BERTH_TEST_PG_START")), 0);
	CHECK_OK(store_ping(w.s, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e);
}

/* Its figures are complete when its connections are gone. */
static long server_count(PGconn *root, const char *db)
{
	char alive[160], count[160];

	snprintf(alive, sizeof(alive), "SELECT count(*) FROM pg_stat_activity WHERE datname = '%s'",
		 db);
	snprintf(count, sizeof(count), "SELECT xact_commit + xact_rollback FROM pg_stat_database "
				       "WHERE datname = '%s'",
		 db);
	for (int i = 0; raw(root, alive) > 0; i++) {
		CHECK(i < 5000);
		usleep(1000);
	}
	return raw(root, count);
}

TEST(every_transaction_is_counted_as_the_server_counts)
{
	struct world w = world_make();
	struct store_counts counts;
	struct sandbox sb;
	char db[64];
	PGconn *root;
	struct err e;
	long before, connect;

	snprintf(db, sizeof(db), "%s", PQdb(w.sql));
	world_done(&w);
	root = PQconnectdb("dbname=postgres");
	before = server_count(root, db);
	store_close(another());
	connect = server_count(root, db) - before;

	before = server_count(root, db);
	w.s = another();
	add(w.s, ID("1"), "ann");
	CHECK_ERR(try_insert(w.s, ID("1"), "ann", "base", &sb, &e), &e, ERR_CONFLICT);
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e);
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e);
	counts = store_counts(w.s);
	store_close(w.s);
	CHECK_INT(counts.transactions, 5);
	CHECK_INT(counts.prepares, 3); /* once per connection */
	CHECK_INT(counts.connects, 1);
	CHECK_INT(server_count(root, db) - before, connect + 5 + 3);
	PQfinish(root);
}

/* --- migrations --- */

TEST(migrations_run_once_however_often_asked)
{
	cleanup(world_done) struct world w = world_make();
	struct err e;

	CHECK_OK(store_migrate(w.s, &e), &e);
	CHECK_OK(store_migrate(w.s, &e), &e);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM migration WHERE number = 1"), 1);
}

static void *migrate(void *arg)
{
	struct store *s = another();
	struct err e;

	(void)arg;
	CHECK_OK(store_migrate(s, &e), &e);
	store_close(s);
	return NULL;
}

TEST(migrations_from_many_connections_at_once)
{
	PGconn *sql = fresh_database();

	in_threads(migrate, NULL);
	CHECK_INT(raw(sql, "SELECT count(*) - count(DISTINCT number) FROM migration"), 0);
	CHECK_INT(raw(sql, "SELECT count(*) FROM sandbox"), 0);
	PQfinish(sql);
}

TEST(a_newer_database_is_refused)
{
	cleanup(world_done) struct world w = world_make();
	struct err e;

	raw(w.sql, "INSERT INTO migration (number, name) VALUES (9000, '9000-later')");
	CHECK_ERR(store_migrate(w.s, &e), &e, ERR_CONFLICT);
	CHECK(strstr(e.msg, "the database has schema 9000"));
	/* No transaction, and so no lock, is left open. The view may be a moment behind. */
	for (int i = 0; i < 100; i++)
		if (raw(w.sql, "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.02) WHERE "
			       "application_name = 'berthd' AND state LIKE 'idle in%'") == 0)
			break;
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM pg_stat_activity WHERE "
			     "application_name = 'berthd' AND state LIKE 'idle in%'"),
		  0);
	CHECK_OK(store_ping(w.s, &e), &e);
}

/* As every migration does; the server takes a moment to pass it on. */
static void tell_migrated(struct world *w, const char *sql)
{
	uint64_t before = store_counts(w->s).connects;
	struct err e;

	raw(w->sql, "BEGIN");
	raw(w->sql, sql);
	raw(w->sql, "NOTIFY berth_migrated");
	raw(w->sql, "COMMIT");
	for (int i = 0; i < 60000 && store_counts(w->s).connects == before; i++) {
		usleep(1000);
		CHECK_OK(store_ping(w->s, &e), &e);
	}
	CHECK(store_counts(w->s).connects > before);
}

TEST(a_store_that_is_older_than_the_schema_reads_and_writes_nothing)
{
	cleanup(world_done) struct world w = world_make();
	struct store *lease = another();
	struct sandbox sb;
	struct err e;

	store_renews(lease);
	add(w.s, ID("1"), "ann");
	CHECK_OK(store_ping(lease, &e), &e);
	tell_migrated(&w, "INSERT INTO migration (number, name) VALUES (9000, '9000-later')");
	CHECK_ERR(try_insert(w.s, ID("2"), "ann", "base", &sb, &e), &e, ERR_BUSY);
	CHECK_STR(e.reason, STORE_UNWRITABLE);
	CHECK(strstr(e.msg, "the database has schema 9000"));
	CHECK_ERR(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e, ERR_BUSY);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox WHERE version = 1"), 1);
	CHECK_OK(store_sandbox_get(w.s, NULL, ID("1"), &sb, &e), &e);
	CHECK_ERR(store_migrate(w.s, &e), &e, ERR_CONFLICT);
	/* The lease is renewed: its end would freeze what runs. */
	CHECK_OK(store_host_put(lease, "h1", "1", false, &e), &e);
	store_close(lease);
	tell_migrated(&w, "DELETE FROM migration WHERE number = 9000");
	add(w.s, ID("2"), "ann");
}

/* --- keys, images, hosts --- */

static void count_key(const struct key *k, void *arg)
{
	CHECK(k->created_ms > 0);
	++*(int *)arg;
}

TEST(a_key_is_found_by_its_hash_until_it_is_revoked)
{
	cleanup(world_done) struct world w = world_make();
	struct key k = { .id = "key_1", .name = "laptop", .owner = "ann", .role = ROLE_ADMIN };
	struct key got = { 0 };
	int count = 0;
	struct err e;

	CHECK_OK(store_key_insert(w.s, &k, HASH, &e), &e);
	CHECK_ERR(store_key_insert(w.s, &k, HASH2, &e), &e, ERR_CONFLICT);
	CHECK_OK(store_key_find_by_hash(w.s, HASH, &got, &e), &e);
	CHECK_STR(got.id, "key_1");
	CHECK_STR(got.name, "laptop");
	CHECK_STR(got.owner, "ann");
	CHECK_INT(got.role, ROLE_ADMIN);
	CHECK_INT(got.revoked_ms, 0);
	CHECK_ERR(store_key_find_by_hash(w.s, HASH2, &got, &e), &e, ERR_UNAUTHENTICATED);

	CHECK_OK(store_key_revoke(w.s, "key_1", &got, &e), &e);
	CHECK(got.revoked_ms > 0);
	k.revoked_ms = got.revoked_ms;
	CHECK_OK(store_key_revoke(w.s, "key_1", &got, &e), &e);
	CHECK_INT(got.revoked_ms, k.revoked_ms);
	CHECK_ERR(store_key_find_by_hash(w.s, HASH, &got, &e), &e, ERR_UNAUTHENTICATED);
	CHECK_ERR(store_key_revoke(w.s, "key_2", &got, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(store_key_list(w.s, count_key, &count, &e), &e);
	CHECK_INT(count, 1);
}

static int count_revoked(struct store *s, uint64_t since_ms, uint64_t within_ms)
{
	int count = 0;
	struct err e;

	CHECK_OK(store_key_list_revoked(s, since_ms, within_ms, count_key, &count, &e), &e);
	return count;
}

TEST(revoked_keys_are_listed_from_a_time_on)
{
	cleanup(world_done) struct world w = world_make();
	struct key old = { .id = "key_1", .owner = "ann", .role = ROLE_ADMIN };
	struct key late = { .id = "key_2", .owner = "ann", .role = ROLE_ADMIN };
	struct key got;
	struct err e;

	CHECK_OK(store_key_insert(w.s, &old, HASH, &e), &e);
	CHECK_OK(store_key_insert(w.s, &late, HASH2, &e), &e);
	CHECK_OK(store_key_revoke(w.s, "key_1", &got, &e), &e);
	CHECK_INT(raw(w.sql, "UPDATE api_key SET revoked_at = now() - interval '1 hour' "
			     "WHERE id = 'key_1' RETURNING 1"),
		  1);
	CHECK_INT(count_revoked(w.s, 0, 60000), 0);
	CHECK_OK(store_key_revoke(w.s, "key_2", &got, &e), &e);
	CHECK_INT(count_revoked(w.s, 0, 60000), 1);
	CHECK_INT(count_revoked(w.s, 0, UINT64_C(2) * 3600 * 1000), 2);
	CHECK_INT(count_revoked(w.s, got.revoked_ms - 1, 0), 1);
	CHECK_INT(count_revoked(w.s, 1, 0), 2);
}

TEST(a_key_without_a_role_cannot_be_stored)
{
	cleanup(world_done) struct world w = world_make();
	struct key k = { .id = "key_1", .owner = "ann" };
	struct err e;

	CHECK_ERR(store_key_insert(w.s, &k, HASH, &e), &e, ERR_INVALID);
	k.role = ROLE_ANYONE;
	CHECK_ERR(store_key_insert(w.s, &k, HASH, &e), &e, ERR_INVALID);
}

static void count_image(const struct image *im, void *arg)
{
	CHECK(im->digest[0]);
	++*(int *)arg;
}

TEST(an_image_is_put_found_and_removed)
{
	cleanup(world_done) struct world w = world_make();
	struct image im = { 0 };
	int count = 0;
	struct err e;

	put_image(w.s, "other", D1);
	put_image(w.s, "other", D2); /* the name means another one now */
	CHECK_OK(store_image_get(w.s, "other", &im, &e), &e);
	CHECK_STR(im.digest, D2);
	CHECK_STR(im.source, "import");
	CHECK_INT(im.bytes, 7);
	CHECK_OK(store_image_list(w.s, count_image, &count, &e), &e);
	CHECK_INT(count, 2);
	CHECK_OK(store_image_remove(w.s, "other", &im, &e), &e);
	CHECK_STR(im.digest, D2);
	CHECK_ERR(store_image_get(w.s, "other", &im, &e), &e, ERR_NOT_FOUND);
	CHECK_ERR(store_image_remove(w.s, "other", &im, &e), &e, ERR_NOT_FOUND);
}

TEST(an_image_in_use_stays_and_so_does_its_digest)
{
	cleanup(world_done) struct world w = world_make();
	struct tombstone t;
	struct image im;
	bool unused;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_ERR(store_image_remove(w.s, "base", &im, &e), &e, ERR_CONFLICT);
	CHECK_STR(e.msg, "image \"base\" is in use by sandboxes");
	put_image(w.s, "base", D2);
	CHECK_OK(store_digest_is_unused(w.s, D1, &unused, &e), &e);
	CHECK(!unused); /* the sandbox has it still */

	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	CHECK_OK(store_sandbox_erase(w.s, ENDING(ID("1"), 1, "{}"), &t, &e), &e);
	CHECK_OK(store_digest_is_unused(w.s, D1, &unused, &e), &e);
	CHECK(unused);
	CHECK_OK(store_digest_is_unused(w.s, D2, &unused, &e), &e);
	CHECK(!unused);
	CHECK_OK(store_image_remove(w.s, "base", &im, &e), &e);
}

static void *remove_base(void *arg)
{
	struct image im;
	struct err e;

	CHECK_ERR(store_image_remove(arg, "base", &im, &e), &e, ERR_CONFLICT);
	return NULL;
}

TEST(a_removal_sees_the_sandbox_of_this_moment)
{
	cleanup(world_done) struct world w = world_make();
	pthread_t thread;

	raw(w.sql, "BEGIN; INSERT INTO sandbox (id, owner, image, image_digest, runtime, host, "
		   "generation, state, memory_mb, cpu_milli, pids, disk_mb, deadline_at) SELECT "
		   "'x', 'ann', name, digest, 'crun', 'h1', 1, 'creating', 1, 1, 1, 1, now() "
		   "FROM image FOR SHARE");
	CHECK_INT(pthread_create(&thread, NULL, remove_base, w.s), 0);
	wait_for_a_waiter(w.sql);
	raw(w.sql, "COMMIT");
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM image"), 1);
}

static void *insert_late(void *arg)
{
	struct sandbox sb;
	struct err e;

	CHECK_ERR(try_insert(arg, ID("1"), "ann", "base", &sb, &e), &e, ERR_NOT_FOUND);
	return NULL;
}

TEST(an_insert_sees_the_removal_of_this_moment)
{
	cleanup(world_done) struct world w = world_make();
	pthread_t thread;

	raw(w.sql, "BEGIN; DELETE FROM image");
	CHECK_INT(pthread_create(&thread, NULL, insert_late, w.s), 0);
	wait_for_a_waiter(w.sql);
	raw(w.sql, "COMMIT");
	CHECK_INT(pthread_join(thread, NULL), 0);
}

TEST(a_host_says_it_is_there)
{
	cleanup(world_done) struct world w = world_make();
	struct err e;

	CHECK_OK(store_host_put(w.s, "h1", "0.1.0", false, &e), &e);
	CHECK_OK(store_host_put(w.s, "h1", "0.2.0", false, &e), &e);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM host WHERE version = '0.2.0'"), 1);
}

#include "store/idempotency.h"

#include <stdatomic.h>
#include <unistd.h>

#include "store-world.h"
#include "store/retention.h"
#include "test.h"

#define H1 "1111111111111111111111111111111111111111111111111111111111111111"
#define H2 "2222222222222222222222222222222222222222222222222222222222222222"

static struct idempotency_use use_of(const char *owner, const char *key, const char *hash)
{
	struct idempotency_use use = { .request = "POST /v1/sandboxes" };

	snprintf(use.owner, sizeof(use.owner), "%s", owner);
	snprintf(use.key, sizeof(use.key), "%s", key);
	snprintf(use.body_hash, sizeof(use.body_hash), "%s", hash);
	return use;
}

static int insert_once(struct store *s, const char *id, const char *image,
		       const struct idempotency_use *use, struct err *e)
{
	struct sandbox_spec spec = SANDBOX_SPEC_DEFAULT;
	struct sandbox_intent intent = {
		.id = id,
		.owner = use->owner,
		.host = "h1",
		.spec = &spec,
		.deadline_ms = 60000,
		.use = use,
	};
	struct sandbox sb = { .id = "untouched" };
	int n;

	snprintf(spec.image, sizeof(spec.image), "%s", image);
	snprintf(spec.runtime, sizeof(spec.runtime), "crun");
	n = store_sandbox_insert(s, &intent, &sb, e);
	CHECK_STR(sb.id, n == 0 ? id : "untouched");
	return n;
}

TEST(a_key_makes_one_sandbox)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use use = use_of("ann", "k 1", H1);
	struct idempotency first;
	struct err e;

	CHECK_ERR(store_idempotency_get(w.s, &use, &first, &e), &e, ERR_NOT_FOUND);
	CHECK_INT(insert_once(w.s, ID("1"), "base", &use, &e), 0);
	CHECK_INT(insert_once(w.s, ID("2"), "base", &use, &e), 1);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 1);
	CHECK_OK(store_idempotency_get(w.s, &use, &first, &e), &e);
	CHECK_STR(first.sandbox_id, ID("1"));
	CHECK_STR(first.request, "POST /v1/sandboxes");
	CHECK_INT(first.status, 0);
	CHECK_STR(first.response, "");
}

TEST(a_key_is_its_owners)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use ann = use_of("ann", "k", H1), bob = use_of("bob", "k", H2);
	struct idempotency first;
	struct err e;

	CHECK_INT(insert_once(w.s, ID("1"), "base", &ann, &e), 0);
	CHECK_INT(insert_once(w.s, ID("2"), "base", &bob, &e), 0);
	CHECK_OK(store_idempotency_get(w.s, &bob, &first, &e), &e);
	CHECK_STR(first.sandbox_id, ID("2"));
}

TEST(another_body_or_request_is_a_conflict)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use use = use_of("ann", "k", H1), body = use_of("ann", "k", H2);
	struct idempotency_use request = use;
	struct idempotency first;
	struct err e;
	bool again;

	snprintf(request.request, sizeof(request.request), "DELETE /v1/sandboxes/" ID("1"));
	CHECK_INT(insert_once(w.s, ID("1"), "base", &use, &e), 0);
	CHECK_INT(insert_once(w.s, ID("2"), "base", &body, &e), 1);
	CHECK_ERR(store_idempotency_get(w.s, &body, &first, &e), &e, ERR_CONFLICT);
	CHECK_ERR(store_idempotency_claim(w.s, &request, ID("1"), &again, &e), &e, ERR_CONFLICT);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 1);
}

TEST(who_could_not_be_made_leaves_the_key_free)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use use = use_of("ann", "k", H1);
	struct err e;

	CHECK_ERR(insert_once(w.s, ID("1"), "nope", &use, &e), &e, ERR_NOT_FOUND);
	CHECK_STR(e.msg, "no image \"nope\"");
	add(w.s, ID("2"), "ann");
	CHECK_ERR(insert_once(w.s, ID("2"), "base", &use, &e), &e, ERR_CONFLICT);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM idempotency"), 0);
	CHECK_INT(insert_once(w.s, ID("1"), "base", &use, &e), 0);
	/* Nor does an image that went away since make the key new. */
	CHECK_INT(insert_once(w.s, ID("3"), "nope", &use, &e), 1);
}

TEST(without_a_key_a_create_is_one_transaction)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use use = use_of("ann", "k", H1);
	uint64_t before = store_counts(w.s).transactions;
	struct err e;

	add(w.s, ID("1"), "ann");
	CHECK_INT(store_counts(w.s).transactions - before, 1);
	CHECK_INT(insert_once(w.s, ID("2"), "base", &use, &e), 0);
	CHECK_INT(store_counts(w.s).transactions - before, 2);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM idempotency"), 1);
}

struct race {
	atomic_int next, made, found;
};

static void *create_one(void *arg)
{
	struct idempotency_use use = use_of("ann", "k", H1);
	struct race *race = arg;
	struct store *s = another();
	char id[] = ID("0");
	struct err e;
	int n;

	id[strlen(id) - 1] = (char)('a' + atomic_fetch_add(&race->next, 1));
	n = insert_once(s, id, "base", &use, &e);
	CHECK_OK(n, &e);
	atomic_fetch_add(n == 0 ? &race->made : &race->found, 1);
	store_close(s);
	return NULL;
}

TEST(of_many_creates_with_one_key_one_is_made)
{
	cleanup(world_done) struct world w = world_make();

	for (int round = 0; round < 10; round++) {
		struct race race = { 0 };

		raw(w.sql, "DELETE FROM idempotency");
		raw(w.sql, "DELETE FROM sandbox");
		raw(w.sql, "DELETE FROM sandbox_event"); /* it remembers an id for ever */
		in_threads(create_one, &race);
		CHECK_INT(race.made, 1);
		CHECK_INT(race.found, THREADS - 1);
		CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox, idempotency "
				     "WHERE sandbox_id = id"),
			  1);
	}
}

static void *create_beside(void *arg)
{
	struct idempotency_use use = use_of("ann", "k", H1);
	struct store *s = another();
	struct err e = { 0 };

	*(int *)arg = insert_once(s, ID("2"), "base", &use, &e);
	CHECK_INT(e.code, ERR_NONE);
	store_close(s);
	return NULL;
}

/* The other transaction has the key, and nobody knows yet whether it will be. */
static int create_while_open(struct world *w, const char *end)
{
	pthread_t thread;
	int n = -2;

	raw(w->sql, "BEGIN; INSERT INTO idempotency (owner, key, request, body_hash, sandbox_id) "
		    "VALUES ('ann', 'k', 'POST /v1/sandboxes', '" H1 "', '" ID("1") "')");
	CHECK_INT(pthread_create(&thread, NULL, create_beside, &n), 0);
	wait_for_a_waiter(w->sql);
	raw(w->sql, end);
	CHECK_INT(pthread_join(thread, NULL), 0);
	return n;
}

TEST(who_comes_while_the_first_is_not_committed_waits_for_its_end)
{
	cleanup(world_done) struct world w = world_make();

	CHECK_INT(create_while_open(&w, "ROLLBACK"), 0);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 1);
	raw(w.sql, "DELETE FROM sandbox");
	raw(w.sql, "DELETE FROM idempotency");
	CHECK_INT(create_while_open(&w, "COMMIT"), 1);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 0);
}

static void *create_of_base(void *arg)
{
	struct idempotency_use use = use_of("ann", "k", H1);
	struct store *s = another();
	struct err e = { 0 };

	CHECK_ERR(insert_once(s, ID("1"), "base", &use, &e), &e, ERR_NOT_FOUND);
	(void)arg;
	store_close(s);
	return NULL;
}

TEST(an_image_that_goes_away_meanwhile_takes_no_key)
{
	cleanup(world_done) struct world w = world_make();
	pthread_t thread;

	raw(w.sql, "BEGIN; DELETE FROM image WHERE name = 'base'");
	CHECK_INT(pthread_create(&thread, NULL, create_of_base, NULL), 0);
	wait_for_a_waiter(w.sql);
	raw(w.sql, "COMMIT");
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM idempotency"), 0);
}

TEST(a_failure_is_stored_with_the_move_and_only_once)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use use = use_of("ann", "k", H1);
	struct idempotency_answer answer = { .use = &use, .status = 503, .response = "{\"a\":1}" };
	struct sandbox_move m = {
		.id = ID("1"),
		.generation = 2,
		.from = SANDBOX_CREATING,
		.to = SANDBOX_FAILED,
		.reason = "broken",
		.answer = &answer,
	};
	struct idempotency first;
	struct sandbox sb;
	struct err e;

	CHECK_INT(insert_once(w.s, ID("1"), "base", &use, &e), 0);
	CHECK_ERR(store_sandbox_move(w.s, &m, &sb, &e), &e, ERR_CONFLICT);
	CHECK_OK(store_idempotency_get(w.s, &use, &first, &e), &e);
	CHECK_INT(first.status, 0); /* it did not move */
	m.generation = 1;
	CHECK_OK(store_sandbox_move(w.s, &m, &sb, &e), &e);
	CHECK_INT(sb.state, SANDBOX_FAILED);
	CHECK_STR(sb.reason, "broken");
	CHECK_INT(sb.version, 2);
	answer.response = "another";
	m.from = SANDBOX_FAILED;
	CHECK_OK(store_sandbox_move(w.s, &m, &sb, &e), &e);
	CHECK_OK(store_idempotency_get(w.s, &use, &first, &e), &e);
	CHECK_INT(first.status, 503);
	CHECK_STR(first.response, "{\"a\":1}");
}

static void *claim_it(void *arg)
{
	struct idempotency_use use = use_of("ann", "k", H1);
	struct store *s = another();
	struct err e;
	bool again;

	CHECK_OK(store_idempotency_claim(s, &use, ID("1"), &again, &e), &e);
	atomic_fetch_add((atomic_int *)arg, again ? 0 : 1);
	store_close(s);
	return NULL;
}

TEST(of_many_who_claim_one_is_the_first)
{
	cleanup(world_done) struct world w = world_make();

	for (int round = 0; round < 10; round++) {
		atomic_int first = 0;

		raw(w.sql, "DELETE FROM idempotency");
		in_threads(claim_it, &first);
		CHECK_INT(first, 1);
	}
}

TEST(keys_outlive_their_sandbox)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use use = use_of("ann", "k", H1);
	struct tombstone t;
	struct err e;

	CHECK_INT(insert_once(w.s, ID("1"), "base", &use, &e), 0);
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_DELETING, &e), &e);
	CHECK_OK(store_sandbox_erase(w.s, ENDING(ID("1"), 1, "{}"), &t, &e), &e);
	CHECK_INT(insert_once(w.s, ID("2"), "base", &use, &e), 1);
}

/* --- how many keys an owner may have --- */

static long counted(struct world *w, const char *owner)
{
	char sql[120];

	snprintf(sql, sizeof(sql),
		 "SELECT coalesce(sum(n), 0) FROM idempotency_count WHERE owner = '%s'", owner);
	return raw(w->sql, sql);
}

/* As if this owner had `n` keys: those that are there count, and others that are not looked at. */
static void pretend(struct world *w, const char *owner, long n)
{
	char sql[120];

	snprintf(sql, sizeof(sql), "INSERT INTO idempotency_count VALUES ('%s', 99, %ld)", owner,
		 n - counted(w, owner));
	raw(w->sql, sql);
}

static int claim(struct world *w, const char *owner, const char *key, struct err *e)
{
	struct idempotency_use use = use_of(owner, key, H1);
	bool again = false;

	if (store_idempotency_claim(w->s, &use, ID("1"), &again, e) < 0)
		return -1;
	return again;
}

TEST(an_owner_has_a_most_of_keys_and_is_in_no_others_way)
{
	cleanup(world_done) struct world w = world_make();
	struct idempotency_use last = use_of("ann", "last", H1), more = use_of("ann", "more", H1);
	struct retention_ages ages = { .ms = { [RETENTION_IDEMPOTENCY] = 3600 * 1000 } };
	uint64_t removed = 0;
	bool pages;
	struct err e;

	CHECK_INT(claim(&w, "ann", "old", &e), 0);
	pretend(&w, "ann", STORE_IDEMPOTENCY_MAX - 1);
	CHECK_INT(insert_once(w.s, ID("1"), "base", &last, &e), 0);
	CHECK_OK(try_move(w.s, ID("1"), SANDBOX_CREATING, SANDBOX_READY, &e), &e);
	CHECK_ERR(claim(&w, "ann", "one more", &e), &e, ERR_LIMIT);
	CHECK_STR(e.reason, STORE_IDEMPOTENCY_FULL);
	CHECK_ERR(insert_once(w.s, ID("2"), "base", &more, &e), &e, ERR_LIMIT);
	CHECK_STR(e.reason, STORE_IDEMPOTENCY_FULL);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM sandbox"), 1);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM idempotency"), 2);
	/* What was taken before is answered as before, and others are not concerned. */
	CHECK_INT(claim(&w, "ann", "old", &e), 1);
	CHECK_INT(insert_once(w.s, ID("2"), "base", &last, &e), 1);
	CHECK_INT(claim(&w, "bob", "one more", &e), 0);
	/* One that is over makes room for one. */
	raw(w.sql, "UPDATE idempotency SET created_at = now() - interval '2h' WHERE key = 'old'");
	CHECK_OK(store_retention_run(w.s, &ages, &removed, &pages, &e), &e);
	CHECK_INT(removed, 1);
	CHECK_INT(claim(&w, "ann", "one more", &e), 0);
	CHECK_ERR(claim(&w, "ann", "two more", &e), &e, ERR_LIMIT);
}

static void *claim_many(void *arg)
{
	struct store *s = another();
	atomic_int *next = arg;
	struct err e;

	for (int i = 0; i < 50; i++) {
		struct idempotency_use use;
		char key[32];
		bool again;

		snprintf(key, sizeof(key), "k%d", atomic_fetch_add(next, 1));
		use = use_of("ann", key, H1);
		CHECK_OK(store_idempotency_claim(s, &use, ID("1"), &again, &e), &e);
		CHECK_OK(store_idempotency_claim(s, &use, ID("1"), &again, &e), &e);
		if (i % 5 == 0)
			CHECK_OK(store_idempotency_release(s, &use, &e), &e);
	}
	store_close(s);
	return NULL;
}

TEST(the_count_of_keys_is_that_of_the_rows)
{
	cleanup(world_done) struct world w = world_make();
	atomic_int next = 0;

	in_threads(claim_many, &next);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM idempotency"), THREADS * 40);
	CHECK_INT(counted(&w, "ann"), THREADS * 40);
	raw(w.sql, "DELETE FROM idempotency");
	CHECK_INT(counted(&w, "ann"), 0);
}

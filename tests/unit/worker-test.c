/* Which job a worker takes: what somebody waits for first, and the rest all the same. */
#include "berthd/runtime/worker.h"

#include "berthd/runtime/berthd.h"
#include "test.h"

#define MANY 10000

static struct workers w;
static struct job jobs[MANY], asked[100];

static void fill(size_t workers)
{
	w.count = workers;
	for (size_t i = 0; i < MANY; i++) {
		jobs[i].background = true;
		worker_submit(&w, &jobs[i]);
	}
}

TEST(a_request_does_not_wait_for_the_background)
{
	fill(4);
	CHECK(workers_next(&w) == &jobs[0]);
	worker_submit(&w, &asked[0]);
	worker_submit(&w, &asked[1]);
	CHECK(workers_next(&w) == &asked[0]);
	CHECK(workers_next(&w) == &asked[1]);
	CHECK(workers_next(&w) == &jobs[1]);
}

TEST(a_job_of_the_background_is_submitted_as_one)
{
	static struct berthd b;
	struct reactor r = { .berthd = &b };
	struct job back = { .owner = "a" }, user = { 0 };

	b.workers.count = 4;
	job_submit_background(&r, &back, NULL, NULL);
	job_submit(&r, "a", &user, NULL, NULL);
	CHECK(workers_next(&b.workers) == &user);
	CHECK(workers_next(&b.workers) == &back);
	CHECK(!back.owner);
}

TEST(the_last_free_worker_is_kept_for_requests)
{
	fill(4);
	for (int i = 0; i < 3; i++)
		CHECK(workers_next(&w) == &jobs[i]);
	CHECK(!workers_next(&w));
	worker_submit(&w, &asked[0]);
	CHECK(workers_next(&w) == &asked[0]);
	w.background.running--;
	CHECK(workers_next(&w) == &jobs[3]);
}

TEST(one_worker_alone_does_both)
{
	fill(1);
	CHECK(workers_next(&w) == &jobs[0]);
	worker_submit(&w, &asked[0]);
	CHECK(workers_next(&w) == &asked[0]);
	CHECK(workers_next(&w) == &jobs[1]);
}

TEST(the_background_gets_on_however_many_requests_there_are)
{
	size_t taken = 0;

	fill(4);
	for (size_t i = 0; i < array_len(asked); i++)
		worker_submit(&w, &asked[i]);
	for (size_t i = 0; i < array_len(asked); i++)
		taken += workers_next(&w)->background;
	CHECK_INT(taken, array_len(asked) / (WORKER_FAIR + 1));
}

/* Requests of another owner go next to the first one's first, not behind its last. */
TEST(owners_are_served_in_turn)
{
	struct job other = { .owner = "b" }, own = { 0 };

	w.count = 4;
	CHECK(worker_share("a") != worker_share("b"));
	CHECK_INT(worker_share(NULL), 0);
	for (size_t i = 0; i < array_len(asked); i++) {
		asked[i].owner = "a";
		worker_submit(&w, &asked[i]);
	}
	worker_submit(&w, &other);
	worker_submit(&w, &own);
	for (int i = 0; i < 3; i++) {
		struct job *job = workers_next(&w);

		CHECK(job == &other || job == &own || job == &asked[0]);
	}
	CHECK(workers_next(&w) == &asked[1]);
}

TEST(no_owner_has_every_worker)
{
	struct job other = { .owner = "b" };

	w.count = WORKERS_SEVERAL;
	for (size_t i = 0; i < array_len(asked); i++) {
		asked[i].owner = "a";
		worker_submit(&w, &asked[i]);
	}
	for (int i = 0; i < 3; i++)
		CHECK(workers_next(&w) == &asked[i]);
	CHECK(!workers_next(&w));
	worker_submit(&w, &other);
	CHECK(workers_next(&w) == &other);
	w.shares[worker_share("a")].running--;
	CHECK(workers_next(&w) == &asked[3]);
}

TEST(no_owner_fills_the_queue)
{
	static struct job more[WORKER_SHARE_MAX + 1];
	struct job other = { .owner = "b" };

	w.count = 4;
	for (size_t i = 0; i <= WORKER_SHARE_MAX; i++) {
		more[i].owner = "a";
		CHECK(workers_put(&w, &more[i]) == (i < WORKER_SHARE_MAX));
	}
	CHECK(workers_put(&w, &other));
	CHECK_INT(w.waiting, WORKER_SHARE_MAX + 1);
}

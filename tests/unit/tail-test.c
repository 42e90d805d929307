/* Readers of a journal: they hear of each change once, and cost nothing while there is none. */
#include "berthd/journal/tail.h"

#include <stdlib.h>

#include "berthd/runtime/berthd.h"
#include "lib/str.h"
#include "test.h"

#define MANY 1000

static struct journals js;
static struct berthd b;
static char dir[] = "tail-test-XXXXXX";

static void on_wake(uv_async_t *async)
{
	(void)async;
}

static struct journal *make(const char *id)
{
	struct journal_head h = { .generation = 7 };
	struct reactor *r = &b.reactors[0];
	struct journal *j;
	struct err e;

	if (!r->berthd) {
		CHECK(mkdtemp(dir));
		CHECK_OK(journals_open(&js, dir, 16 << 20, &e), &e);
		CHECK(uv_loop_init(&r->loop) == 0);
		CHECK(uv_async_init(&r->loop, &r->wake, on_wake) == 0);
		r->read_buffer = xcalloc(1, REACTOR_READ_SIZE);
		r->berthd = &b;
	}
	CHECK(str_copy(h.owner, sizeof(h.owner), "me"));
	CHECK(str_copy(h.sandbox, sizeof(h.sandbox), "sb_c1_0123456789abcdefghij"));
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), id));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	j->reactor = r;
	return j;
}

static size_t looks, bytes, ends, refusals;

static void on_idle(struct tail *t)
{
	(void)t;
	looks++;
}

static bool on_output(struct tail *t, enum frame_type stream, uint8_t *data, size_t len)
{
	(void)t, (void)stream, (void)data;
	bytes += len;
	return false;
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	(void)exit;
	ends++;
	refusals += why && why->code == ERR_NOT_FOUND;
	tail_close(t);
}

static const struct tail_events sink = { .output = on_output,
					 .idle = on_idle,
					 .finished = on_finished };

TEST(who_waits_looks_when_something_has_changed_and_not_before)
{
	struct journal *j = make("ex_many"), *other = make("ex_other");
	struct exec_exit exit = { .kind = EXEC_EXITED };
	struct exec_usage use = { 0 };
	struct reactor *r = &b.reactors[0];
	struct err e;

	for (int i = 0; i < MANY; i++)
		tail_follow(tail_new(r, &sink, NULL), j, 0);
	for (int i = 0; i < 100; i++)
		tails_run(r); /* a hundred jobs are done */
	CHECK_INT(looks, MANY);
	for (int i = 0; i < 10; i++) {
		CHECK(journal_append(j, 0, "0123456789", 10, false));
		tails_wake(j);
		tails_wake(other); /* somebody else's */
		tails_run(r);
		tails_run(r);
		CHECK_INT(bytes, (size_t)MANY * 10 * (i + 1));
	}
	CHECK_INT(looks, MANY * 11);
	CHECK_OK(journal_end(j, &exit, &use, true, &e), &e);
	tails_wake(j);
	tails_run(r);
	CHECK_INT(ends, MANY);
	CHECK(!r->tails);
	journal_unref(j);
	journal_unref(other);
}

TEST(what_changes_between_two_looks_wakes_again)
{
	struct journal *j = make("ex_again");
	struct reactor *r = &b.reactors[0];
	struct tail *t = tail_new(r, &sink, NULL);

	tail_follow(t, j, 0);
	tails_run(r);
	CHECK(atomic_load(&j->waiting) & 1);
	tails_wake(j); /* nobody has looked since */
	CHECK_INT(atomic_load(&j->waiting), 0);
	tails_run(r);
	CHECK(atomic_load(&j->waiting) & 1);
	tail_close(t);
	tails_run(r);
	journal_unref(j);
}

static bool on_small(struct tail *t, enum frame_type stream, uint8_t *data, size_t len)
{
	(void)stream, (void)data;
	*(size_t *)t->data += len;
	return false;
}

/* Readers of much output keep neither the loop nor another reader for long. */
TEST(a_run_is_bounded_and_the_next_begins_behind_it)
{
	static const struct tail_events one = { .output = on_small, .finished = on_finished };
	static char piece[64 * 1024];
	struct journal *big = make("ex_big"), *small = make("ex_small");
	struct reactor *r = &b.reactors[0];
	struct tail *tails[3];
	size_t heard[3] = { 0 }, runs = 0;

	for (int i = 0; i < 96; i++)
		CHECK(journal_append(big, 0, piece, sizeof(piece), false));
	CHECK(journal_append(small, 0, "0123456789", 10, false));
	for (size_t i = 0; i < 3; i++) { /* the last one is first in the list */
		tails[i] = tail_new(r, &one, &heard[i]);
		tail_follow(tails[i], i == 0 ? small : big, 0);
	}
	tails_run(r);
	CHECK(heard[2] > 0 && heard[2] <= 3 << 20);
	CHECK_INT(heard[1] + heard[0], 0);
	tails_run(r);
	CHECK(heard[1] > 0 && heard[1] <= 3 << 20);
	tails_run(r);
	CHECK_INT(heard[0], 10);
	while (heard[1] + heard[2] < 2 * 96 * sizeof(piece) && runs++ < 20)
		tails_run(r);
	CHECK_INT(heard[1], 96 * sizeof(piece));
	CHECK_INT(heard[2], 96 * sizeof(piece));
	for (size_t i = 0; i < 3; i++)
		tail_close(tails[i]);
	tails_run(r);
	journal_unref(big);
	journal_unref(small);
}

/* The same request, sent again while init refuses the first: it waited for an end for ever. */
TEST(who_follows_a_command_that_was_refused_is_told_so)
{
	struct journal *j = make("ex_refused");
	struct tail *before = tail_new(&b.reactors[0], &sink, NULL);
	struct tail *after = tail_new(&b.reactors[0], &sink, NULL);
	struct err why;

	ends = refusals = 0;
	tail_follow(before, j, 0);
	tails_run(&b.reactors[0]);
	CHECK_INT(ends, 0);
	err_set(&why, ERR_NOT_FOUND, "no such command");
	journal_refuse(j, &why);
	tails_wake(j);
	tail_follow(after, j, UINT64_MAX);
	tails_run(&b.reactors[0]);
	CHECK_INT(ends, 2);
	CHECK_INT(refusals, 2);
	journal_unref(j);
}

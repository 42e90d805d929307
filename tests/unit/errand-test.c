/* What is sent to an exec that runs, and that no loop of this berthd has taken up again. */
#include "berthd/exec/errand.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/kill.h"
#include "berthd/exec/tell.h"
#include "lib/errno-map.h"
#include "lib/str.h"
#include "test.h"

#define SANDBOX "sb_c1_0123456789abcdefghij"

static struct journals js;
static struct reactor r;
static char dir[] = "errand-test-XXXXXX";

static void on_wake(uv_async_t *async)
{
	(void)async;
}

static void open_all(void)
{
	struct err e;

	CHECK(mkdtemp(dir));
	CHECK_OK(journals_open(&js, dir, 1 << 20, &e), &e);
	CHECK(uv_loop_init(&r.loop) == 0 && uv_async_init(&r.loop, &r.wake, on_wake) == 0);
	pthread_mutex_init(&r.lock, NULL);
	r.done_last = &r.done;
}

/* As after a restart: its file says that it runs. */
static struct journal *make(const char *id)
{
	struct journal_head h = { .generation = 7, .ask.flags = EXEC_STDIN };
	struct journal *j;
	struct err e;

	if (!js.dir)
		open_all();
	CHECK(str_copy(h.owner, sizeof(h.owner), "me"));
	CHECK(str_copy(h.sandbox, sizeof(h.sandbox), SANDBOX));
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), id));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	return j;
}

static void end(struct journal *j)
{
	struct exec_exit exit = { .kind = EXEC_EXITED };
	struct exec_usage use = { 0 };
	struct err e;

	CHECK_OK(journal_end(j, &exit, &use, true, &e), &e);
}

/* What was posted to the loop, until nothing is. */
static void run_jobs(void)
{
	while (r.done) {
		struct job *job = r.done;

		r.done = job->next;
		if (!r.done)
			r.done_last = &r.done;
		job->done(job);
	}
}

struct heard {
	int times;
	bool failed;
	struct err e;
};

static void hear(void *data, const struct err *why)
{
	struct heard *h = data;

	h->times++;
	h->failed = why;
	if (why)
		h->e = *why;
}

static void check_not_reached(const struct heard *h, const char *reason)
{
	CHECK_INT(h->times, 1);
	CHECK(h->failed);
	CHECK_INT(h->e.code, ERR_BUSY);
	CHECK(h->e.reason && strcmp(h->e.reason, reason) == 0);
}

static void strike(struct journal *j, uint32_t signum, struct heard *h)
{
	struct kill_spec blow = { .signum = signum };

	exec_kill(&r, j, &blow, hear, h);
	run_jobs();
	(void)uv_run(&r.loop, UV_RUN_NOWAIT); /* its timer is closed */
}

TEST(a_signal_to_one_that_is_not_reached_is_not_told_as_delivered)
{
	static const uint32_t signals[] = { SIGTERM, SIGKILL };
	struct journal *j = make("ex_signal");

	for (size_t i = 0; i < array_len(signals); i++) {
		struct heard h = { 0 };

		strike(j, signals[i], &h);
		check_not_reached(&h, REASON_NOT_REACHED);
	}
	journal_unref(j);
}

TEST(a_signal_to_one_that_has_ended_is_no_failure)
{
	struct journal *j = make("ex_ended");
	struct heard h = { 0 };

	end(j);
	strike(j, SIGTERM, &h);
	CHECK_INT(h.times, 1);
	CHECK(!h.failed);
	journal_unref(j);
}

static void on_input(struct errand *e, const struct err *why)
{
	hear(e->data, why);
}

TEST(input_for_one_that_is_not_reached_is_not_taken)
{
	struct journal *j = make("ex_input");
	struct heard h = { 0 };
	struct errand e = { .from = &r, .journal = j, .done = on_input, .data = &h };

	errand_send(&e);
	run_jobs();
	check_not_reached(&h, REASON_NOT_TAKEN);
	journal_unref(j);
}

static void tell(struct journal *j, enum frame_type type, struct heard *h)
{
	cleanup(buf_done) struct buf payload = buf_make(64);

	exec_tell(&r, j, type, &payload, hear, h);
	CHECK_INT(h->times, 0); /* never before it returns */
	run_jobs();
}

TEST(what_is_told_to_one_that_is_not_reached_is_not_told_to_an_ended_one)
{
	static const enum frame_type types[] = { FRAME_STDIN, FRAME_STDIN_END, FRAME_SIGNAL,
						 FRAME_RESIZE };
	struct journal *j = make("ex_tell");

	for (size_t i = 0; i < array_len(types); i++) {
		struct heard h = { 0 };

		tell(j, types[i], &h);
		check_not_reached(&h, REASON_NOT_REACHED);
	}
	end(j);
	for (size_t i = 0; i < array_len(types); i++) {
		struct heard h = { 0 };

		tell(j, types[i], &h);
		CHECK(h.failed);
		CHECK_INT(h.e.code, ERR_CONFLICT);
	}
	journal_unref(j);
}

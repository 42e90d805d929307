/*
 * Mail to an exec that runs, and that no loop of this berthd has taken up again. See
 * exec-init-test.c for mail that arrives.
 */
#include "berthd/exec/mailbox.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/kill.h"
#include "lib/errno-map.h"
#include "lib/str.h"
#include "test.h"

#define SANDBOX "sb_c1_0123456789abcdefghij"

static struct journals js;
static struct reactor r;
static char dir[] = "mailbox-test-XXXXXX";

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

struct way {
	const char *reason;
	void (*send)(struct journal *j, struct heard *h);
};

static void send_signal(struct journal *j, struct heard *h)
{
	mail_signal(&r, j, SIGKILL, hear, h);
}

static void send_input(struct journal *j, struct heard *h)
{
	struct buf bytes = buf_make(64);

	buf_adds(&bytes, "a");
	mail_input(&r, j, &bytes, true, hear, h);
	CHECK(!bytes.data); /* it was taken over */
}

static void send_keys(struct journal *j, struct heard *h)
{
	mail_keys(&r, j, (struct bytes){ (const uint8_t *)"a", 1 }, hear, h);
}

static void send_size(struct journal *j, struct heard *h)
{
	mail_size(&r, j, &(struct exec_size){ 80, 25 }, hear, h);
}

static const struct way ways[] = {
	{ REASON_NOT_REACHED, send_signal },
	{ REASON_NOT_TAKEN, send_input },
	{ REASON_NOT_REACHED, send_keys },
	{ REASON_NOT_REACHED, send_size },
};

TEST(mail_to_one_that_is_not_reached_is_not_answered_as_to_an_ended_one)
{
	struct journal *j = make("ex_mail");

	for (size_t i = 0; i < array_len(ways); i++) {
		struct heard h = { 0 };

		ways[i].send(j, &h);
		mail_drop(&r, j, &h);  /* nothing waits: it says nothing */
		CHECK_INT(h.times, 0); /* never from within */
		run_jobs();
		check_not_reached(&h, ways[i].reason);
	}
	end(j);
	for (size_t i = 0; i < array_len(ways); i++) {
		struct heard h = { 0 };

		ways[i].send(j, &h);
		run_jobs();
		CHECK(h.failed);
		CHECK_INT(h.e.code, ERR_CONFLICT);
	}
	journal_unref(j);
}

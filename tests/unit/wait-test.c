/* What a command says, its end, and the time: which comes first. */
#include "berthd/exec/wait.h"

#include "berthd/exec/exec.h"
#include "exec-world.h"
#include "lib/str.h"
#include "test.h"

struct seen {
	int times;
	bool failed;
	struct wait_result result;
};

static void on_done(void *data, const struct wait_result *result, const struct err *why)
{
	struct seen *s = data;

	s->times++;
	s->failed = why;
	if (result)
		s->result = *result;
}

static void say_text(enum frame_type stream, const char *text)
{
	cleanup(buf_done) struct buf frame = buf_make(256);

	frame_add(&frame, stream, text, strlen(text));
	say(&frame);
}

static struct wait *wait_for(struct journal *j, enum wait_for what, const char *text,
			     uint64_t timeout_ms, struct seen *s)
{
	struct wait_ask ask = {
		.by = { loop(), "rq_1", "me" },
		.journal = j,
		.what = what,
		.text = text,
		.timeout_ms = timeout_ms,
	};
	void *held;
	struct err e;

	*s = (struct seen){ 0 };
	CHECK_OK(wait_begin(&ask, on_done, s, &held, &e), &e);
	CHECK_INT(s->times, 0);
	return held;
}

static void until_done(struct seen *s)
{
	while (s->times == 0)
		turn();
	for (int i = 0; i < 5; i++)
		turn();
	CHECK_INT(s->times, 1);
	CHECK(!s->failed);
}

TEST(a_text_may_come_in_pieces_of_one_stream)
{
	struct journal *j = begin_exec("ex_1", 0);
	struct seen s;

	(void)wait_for(j, WAIT_FOR_LOG, "ready", WAIT_MAX_MS, &s);
	say_text(FRAME_STDOUT, "it is rea");
	say_text(FRAME_STDERR, "dy"); /* of the other stream: not it */
	for (int i = 0; i < 50; i++)
		turn();
	CHECK_INT(s.times, 0);
	say_text(FRAME_STDOUT, "dy");
	until_done(&s);
	CHECK(s.result.ready);
	CHECK_INT(s.result.end, WAIT_SAID);
}

TEST(an_end_before_the_text_is_not_what_was_waited_for)
{
	struct journal *j = begin_exec("ex_1", 0);
	struct seen text, end;

	(void)wait_for(j, WAIT_FOR_LOG, "/^never$/", WAIT_MAX_MS, &text);
	(void)wait_for(j, WAIT_FOR_EXIT, "", WAIT_MAX_MS, &end);
	say_exited(0);
	until_done(&text);
	until_done(&end);
	CHECK(!text.result.ready && end.result.ready);
	CHECK_INT(text.result.end, WAIT_ENDED);
	CHECK_INT(end.result.end, WAIT_ENDED);
}

TEST(the_time_may_be_over_first_and_the_caller_gone)
{
	struct journal *j = begin_exec("ex_1", 0);
	struct seen s;

	(void)wait_for(j, WAIT_FOR_EXIT, "", 1, &s);
	until_done(&s);
	CHECK(!s.result.ready);
	CHECK_INT(s.result.end, WAIT_TIMED_OUT);
	wait_cancel(wait_for(j, WAIT_FOR_EXIT, "", 1, &s));
	for (int i = 0; i < 20; i++)
		turn();
	CHECK_INT(s.times, 0);
}

TEST(what_cannot_be_waited_for_is_refused)
{
	static const struct wait_ask wrong[] = {
		{ .what = WAIT_FOR_PORT, .port = 0 },
		{ .what = WAIT_FOR_PORT, .port = 65536 },
		{ .what = WAIT_FOR_LOG, .text = "" },
		{ .what = WAIT_FOR_LOG, .text = "/(/" },
		{ .what = WAIT_FOR_EXIT, .timeout_ms = WAIT_MAX_MS + 1 },
	};
	void *held;
	struct err e;

	for (size_t i = 0; i < array_len(wrong); i++)
		CHECK_ERR(wait_begin(&wrong[i], on_done, NULL, &held, &e), &e, ERR_INVALID);
}

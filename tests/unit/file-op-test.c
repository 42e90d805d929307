/* An operation on files, and an init that does what was asked, errs, or goes away. */
#include "berthd/exec/file-op.h"

#include <stdlib.h>

#include "exec-world.h"
#include "lib/str.h"
#include "test.h"

struct seen {
	int opened, entries, changes, ended;
	size_t bytes;
	bool done, failed, unsure;
	uint64_t count;
	char path[FILE_PATH_SIZE];
	struct err why;
};

static void on_opened(void *data)
{
	((struct seen *)data)->opened++;
}

static void on_entry(void *data, const struct file_entry *x)
{
	(void)x;
	((struct seen *)data)->entries++;
}

static void on_change(void *data, const struct file_change *x)
{
	(void)x;
	((struct seen *)data)->changes++;
}

static bool on_bytes(void *data, const uint8_t *bytes, size_t len)
{
	(void)bytes;
	((struct seen *)data)->bytes += len;
	return false;
}

static void on_done(void *data, const struct file_result *result)
{
	struct seen *s = data;

	s->ended++;
	s->done = true;
	s->count = result->count;
	if (result->entry)
		CHECK(str_copy(s->path, sizeof(s->path), result->entry->path));
}

static void on_failed(void *data, const struct err *why, bool unsure)
{
	struct seen *s = data;

	s->ended++;
	s->failed = true;
	s->unsure = unsure;
	s->why = *why;
}

static const struct file_op_sink sink = {
	.opened = on_opened,
	.entry = on_entry,
	.change = on_change,
	.bytes = on_bytes,
	.done = on_done,
	.failed = on_failed,
};

static struct file_op *begin_in(const char *sandbox, enum file_verb verb, struct seen *s)
{
	struct file_request ask = { .verb = verb, .limit = 2, .path = "/a", .to = "/b" };
	struct caller by = { loop(), "rq_1", "me" };
	struct file_begin begin = { &by, sandbox, &ask, &sink, s };
	struct file_op *o;
	struct err e;

	*s = (struct seen){ 0 };
	CHECK_OK(file_op_begin(&begin, &o, &e), &e);
	CHECK_INT(s->ended, 0); /* never from within */
	return o;
}

/* Init has the request. */
static struct file_op *begin(enum file_verb verb, struct seen *s)
{
	struct file_op *o;

	world_open();
	o = begin_in(SANDBOX, verb, s);
	(void)expect(FRAME_FILE);
	CHECK_INT(s->opened, 1);
	return o;
}

static void say_entry(const char *path)
{
	cleanup(buf_done) struct buf record = buf_make(16384), frame = buf_make(16384);
	struct file_entry x = { .type = FILE_TYPE_FILE };

	CHECK(str_copy(x.path, sizeof(x.path), path));
	file_entry_encode(&record, &x);
	frame_add(&frame, FRAME_ENTRY, record.data, record.len);
	say(&frame);
}

static void say_done(uint64_t count)
{
	cleanup(buf_done) struct buf record = buf_make(64), frame = buf_make(64);

	file_done_encode(&record, &(struct file_done){ count });
	frame_add(&frame, FRAME_DONE, record.data, record.len);
	say(&frame);
}

static void say_bytes(const char *text)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	frame_add(&frame, FRAME_DATA, text, strlen(text));
	say(&frame);
}

/* Nothing more is heard of it, and init's connection is closed. */
static void end(struct file_op *o, struct seen *s)
{
	while (s->ended == 0 || !is_hung_up())
		turn();
	CHECK_INT(s->ended, 1);
	file_op_close(o);
	turn();
}

static void ends_in_doubt(struct file_op *o, struct seen *s, enum err_code code, bool unsure)
{
	while (s->ended == 0)
		turn();
	CHECK(s->failed);
	CHECK_INT(s->why.code, code);
	CHECK_INT(s->unsure, unsure);
	file_op_close(o);
	turn();
}

TEST(one_entry_is_the_result)
{
	struct seen s;
	struct file_op *o = begin(FILE_MKDIR, &s);

	say_entry("/a");
	say_done(1);
	end(o, &s);
	CHECK(s.done);
	CHECK_INT(s.count, 1);
	CHECK_STR(s.path, "/a");
}

TEST(a_body_is_sent_and_then_done)
{
	struct seen s;
	struct file_op *o = begin(FILE_WRITE, &s);

	CHECK(!file_op_send(o, "abc", 3));
	CHECK_INT(expect(FRAME_DATA).len, 3);
	file_op_commit(o);
	(void)expect(FRAME_DATA_END);
	say_entry("/a");
	say_done(0);
	end(o, &s);
	CHECK(s.done);
}

/* A guest that has not got all of it must not be believed. */
TEST(a_body_is_not_done_before_all_of_it_was_sent)
{
	struct seen s;
	struct file_op *o = begin(FILE_WRITE, &s);

	say_entry("/a");
	say_done(1);
	end(o, &s);
	CHECK(s.failed && !s.unsure);
	CHECK_INT(s.why.code, ERR_INTERNAL);
}

TEST(a_verb_has_only_what_is_its_own)
{
	static const enum file_verb without_bytes[] = { FILE_STAT, FILE_LIST, FILE_REMOVE,
							FILE_WATCH, FILE_READ /* no entry yet */ };
	static const enum file_verb without_entries[] = { FILE_REMOVE, FILE_WATCH, FILE_PACK,
							  FILE_UNPACK };
	struct seen s;

	for (size_t i = 0; i < array_len(without_bytes); i++) {
		struct file_op *o = begin(without_bytes[i], &s);

		say_bytes("x");
		end(o, &s);
		CHECK(s.failed && s.bytes == 0);
	}
	for (size_t i = 0; i < array_len(without_entries); i++) {
		struct file_op *o = begin(without_entries[i], &s);

		say_entry("/a");
		end(o, &s);
		CHECK(s.failed && s.entries == 0);
	}
}

TEST(what_is_owed_must_come)
{
	static const enum file_verb owing[] = { FILE_STAT, FILE_READ, FILE_MKDIR, FILE_MOVE,
						FILE_PACK };
	struct seen s;

	for (size_t i = 0; i < array_len(owing); i++) {
		struct file_op *o = begin(owing[i], &s);

		say_done(0);
		end(o, &s);
		CHECK(s.failed);
	}
}

TEST(no_more_entries_than_were_asked_for)
{
	struct seen s;
	struct file_op *o = begin(FILE_LIST, &s);

	for (int i = 0; i < 3; i++)
		say_entry("/a");
	end(o, &s);
	CHECK(s.failed);
	CHECK_INT(s.entries, 2);
	o = begin(FILE_READ, &s);
	say_entry("/a");
	say_entry("/a");
	end(o, &s);
	CHECK(s.failed);
	CHECK_INT(s.entries, 1);
}

TEST(a_connection_that_ends_leaves_doubt_only_of_what_may_be_done)
{
	struct seen s;
	struct file_op *o = begin(FILE_REMOVE, &s);

	hang_up();
	ends_in_doubt(o, &s, ERR_BUSY, true);
	o = begin(FILE_WRITE, &s);
	hang_up();
	ends_in_doubt(o, &s, ERR_BUSY, false);
	o = begin(FILE_WRITE, &s);
	file_op_commit(o);
	(void)expect(FRAME_DATA_END);
	hang_up();
	ends_in_doubt(o, &s, ERR_BUSY, true);
}

TEST(what_init_says_of_a_failure_is_no_doubt)
{
	cleanup(buf_done) struct buf frame = buf_make(1024);
	struct seen s;
	struct file_op *o = begin(FILE_REMOVE, &s);
	struct err why;

	err_set(&why, ERR_DENIED, "no");
	frame_add_error(&frame, &why);
	say(&frame);
	ends_in_doubt(o, &s, ERR_DENIED, false);
}

TEST(a_failure_of_the_first_step_comes_from_the_loop)
{
	struct seen s;

	world_open();
	ends_in_doubt(begin_in("no id", FILE_STAT, &s), &s, ERR_INVALID, false);
	file_op_close(begin_in("no id", FILE_STAT, &s)); /* nothing is called then */
	for (int i = 0; i < 10; i++)
		turn();
	CHECK_INT(s.ended, 0);
}

TEST(a_request_that_cannot_be_right_is_refused)
{
	struct file_request ask = { .verb = FILE_STAT, .path = "relative" };
	struct caller by = { loop(), "rq_1", "me" };
	struct file_begin begin = { &by, SANDBOX, &ask, &sink, NULL };
	struct file_op *o;
	struct err e;

	CHECK_ERR(file_op_begin(&begin, &o, &e), &e, ERR_INVALID);
}

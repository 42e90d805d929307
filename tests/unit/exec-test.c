#include "proto/exec.h"

#include <signal.h>

#include "proto/writer.h"
#include "test.h"

static struct bytes wire_of(const struct buf *b)
{
	return (struct bytes){ (const uint8_t *)b->data, b->len };
}

TEST(a_request_comes_out_as_it_went_in)
{
	cleanup(exec_request_done) struct exec_request q = { .flags = EXEC_STDIN,
							     .timeout_ms = 1ULL << 40,
							     .cwd = "/tmp" };
	cleanup(exec_request_done) struct exec_request back = { 0 };
	cleanup(buf_done) struct buf b = buf_make(4096);
	struct err e;

	strv_add(&q.argv, "sh");
	strv_add(&q.argv, "");
	strv_add(&q.env, "A=b=c");
	exec_request_encode(&b, &q);
	CHECK_OK(exec_request_decode(wire_of(&b), &back, &e), &e);
	CHECK_INT(back.timeout_ms, 1LL << 40);
	CHECK_INT(back.argv.len, 2);
	CHECK_STR(back.argv.items[1], "");
	CHECK_STR(back.env.items[0], "A=b=c");
	CHECK_STR(back.cwd, "/tmp");
	CHECK(back.argv.items[2] == NULL);
}

TEST(a_request_that_cannot_run_is_refused)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct exec_request q = { 0 }, back = { 0 };
	struct err e;

	exec_request_encode(&b, &q);
	CHECK_ERR(exec_request_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);

	strv_add(&q.argv, "sh");
	strv_add(&q.env, "=x");
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_INVALID);
	strv_done(&q.env);
	for (int i = 0; i <= EXEC_ENV_MAX; i++)
		strv_add(&q.env, "A=b");
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_TOO_LARGE);
	exec_request_done(&q);
}

TEST(an_exit_is_whole_or_refused)
{
	cleanup(buf_done) struct buf b = buf_make(4096);
	struct exec_exit x = { .kind = EXEC_SIGNALLED, .signum = 9, .wall_us = 7 }, back;
	struct err e;

	exec_exit_encode(&b, &x);
	CHECK_OK(exec_exit_decode(wire_of(&b), &back, &e), &e);
	CHECK_INT(back.kind, EXEC_SIGNALLED);
	CHECK_INT(back.signum, 9);
	for (size_t len = 0; len < b.len; len++)
		CHECK_ERR(exec_exit_decode((struct bytes){ (uint8_t *)b.data, len }, &back, &e), &e,
			  ERR_INVALID);
	b.data[0] = EXEC_KIND_COUNT;
	CHECK_ERR(exec_exit_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
}

static struct bytes cut(const struct buf *b, size_t len)
{
	return (struct bytes){ (const uint8_t *)b->data, len };
}

/* A request that can run, to be spoiled in one thing. */
static struct exec_request good_request(void)
{
	struct exec_request q = { .id = "x-1", .timeout_ms = 5, .cwd = "/" };

	strv_add(&q.argv, "sh");
	strv_add(&q.env, "A=b");
	return q;
}

TEST(every_member_of_a_request_travels)
{
	cleanup(exec_request_done) struct exec_request q = good_request();
	cleanup(exec_request_done) struct exec_request back = { 0 };
	cleanup(buf_done) struct buf b = buf_make(4096);
	struct err e;

	q.flags = EXEC_KEEP | EXEC_WHOLE;
	q.size = (struct exec_size){ 81, 25 };
	memcpy(q.shell, "main", 5);
	exec_request_encode(&b, &q);
	for (size_t len = 0; len < b.len; len++) {
		struct exec_request part = { 0 };

		CHECK_ERR(exec_request_decode(cut(&b, len), &part, &e), &e, ERR_INVALID);
		CHECK(!part.argv.items && !part.env.items); /* nothing is left to free */
	}
	CHECK_OK(exec_request_decode(wire_of(&b), &back, &e), &e);
	CHECK_STR(back.id, "x-1");
	CHECK_INT(back.flags, EXEC_KEEP | EXEC_WHOLE);
	CHECK(back.size.cols == 81 && back.size.rows == 25);
	CHECK_STR(back.shell, "main");
	CHECK_INT(back.timeout_ms, 5);
	CHECK_STR(back.cwd, "/");
	writer_u8(&b, 0);
	exec_request_done(&back);
	CHECK_ERR(exec_request_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
}

TEST(what_is_decoded_is_checked_too)
{
	cleanup(exec_request_done) struct exec_request q = good_request();
	struct exec_request back = { 0 };
	cleanup(buf_done) struct buf b = buf_make(4096);
	struct err e;

	q.flags = EXEC_PTY;
	exec_request_encode(&b, &q);
	CHECK_ERR(exec_request_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
	CHECK(!back.argv.items && !back.env.items);
}

TEST(an_id_is_a_name_of_a_file)
{
	static const char *const good[] = { "a", "Z9._-", "-", "a.b" };
	static const char *const bad[] = { "", ".", ".a", "a/b", "a b", "\xc3\xa4" };
	char longest[EXEC_ID_SIZE + 1];
	struct err e;

	for (size_t i = 0; i < array_len(good); i++)
		CHECK_OK(exec_id_check(good[i], &e), &e);
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(exec_id_check(bad[i], &e), &e, ERR_INVALID);
	memset(longest, 'a', sizeof(longest));
	longest[EXEC_ID_SIZE] = '\0';
	CHECK_ERR(exec_id_check(longest, &e), &e, ERR_INVALID);
	longest[EXEC_ID_SIZE - 1] = '\0';
	CHECK_OK(exec_id_check(longest, &e), &e);
}

TEST(a_request_with_a_bad_id_is_refused_and_one_without_is_not)
{
	cleanup(exec_request_done) struct exec_request q = good_request();
	struct err e;

	CHECK_OK(exec_request_check(&q, &e), &e);
	q.id[0] = '.';
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_INVALID);
	q.id[0] = '\0';
	CHECK_OK(exec_request_check(&q, &e), &e);
}

TEST(a_terminal_has_a_size_and_no_shell)
{
	cleanup(exec_request_done) struct exec_request q = good_request();
	struct err e;

	CHECK_OK(exec_request_check(&q, &e), &e); /* without a terminal its size is nothing */
	q.flags = EXEC_PTY;
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_INVALID);
	q.size = (struct exec_size){ 80, 24 };
	CHECK_OK(exec_request_check(&q, &e), &e);
	memcpy(q.shell, "main", 5);
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "no terminal"));
	q.flags = 0;
	CHECK_OK(exec_request_check(&q, &e), &e);
}

TEST(a_size_has_both_ends)
{
	static const struct {
		uint16_t cols, rows;
		bool ok;
	} rows[] = {
		{ 1, 1, true },
		{ 0, 1, false },
		{ 1, 0, false },
		{ 1000, 1000, true },
		{ 1001, 1, false },
		{ 1, 1001, false },
	};
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		struct exec_size size = { rows[i].cols, rows[i].rows }, back = { 7, 7 };
		cleanup(buf_done) struct buf b = buf_make(64);

		exec_size_encode(&b, &size);
		CHECK_INT(b.len, 8);
		if (!rows[i].ok) {
			CHECK_ERR(exec_size_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
			CHECK(back.cols == 7 && back.rows == 7);
			continue;
		}
		CHECK_OK(exec_size_decode(wire_of(&b), &back, &e), &e);
		CHECK(back.cols == size.cols && back.rows == size.rows);
		CHECK_ERR(exec_size_decode(cut(&b, 7), &back, &e), &e, ERR_INVALID);
	}
}

TEST(a_size_does_not_wrap)
{
	cleanup(buf_done) struct buf b = buf_make(64);
	struct exec_size back;
	struct err e;

	writer_u32(&b, 65536 + 80);
	writer_u32(&b, 24);
	CHECK_ERR(exec_size_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "columns and rows"));
}

TEST(a_shell_takes_variables_it_can_assign_to)
{
	static const char *const good[] = { "A=", "_x9=y", "a=b=c" };
	static const char *const bad[] = { "9A=x", "0=x", "A-B=x", "A", "=x", "A.B=" };
	struct err e;

	for (size_t i = 0; i < array_len(good) + array_len(bad); i++) {
		bool fine = i < array_len(good);
		cleanup(exec_request_done) struct exec_request q = good_request();

		memcpy(q.shell, "main", 5);
		strv_add(&q.env, fine ? good[i] : bad[i - array_len(good)]);
		if (fine)
			CHECK_OK(exec_request_check(&q, &e), &e);
		else
			CHECK_ERR(exec_request_check(&q, &e), &e, ERR_INVALID);
	}
}

TEST(without_a_shell_a_variable_needs_a_name_only)
{
	cleanup(exec_request_done) struct exec_request q = good_request();
	struct err e;

	strv_add(&q.env, "9.A=x");
	CHECK_OK(exec_request_check(&q, &e), &e);
	strv_add(&q.env, "none");
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "\"none\""));
}

TEST(arguments_and_variables_have_a_most)
{
	cleanup(exec_request_done) struct exec_request q = { 0 };
	struct err e;

	for (int i = 0; i < EXEC_ARGS_MAX; i++)
		strv_add(&q.argv, "a");
	CHECK_OK(exec_request_check(&q, &e), &e);
	strv_add(&q.argv, "a");
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_TOO_LARGE);
	strv_done(&q.argv);
	strv_add(&q.argv, "");
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_INVALID); /* nothing to run */
	strv_done(&q.argv);
	strv_add(&q.argv, "a");
	for (int i = 0; i < EXEC_ENV_MAX; i++)
		strv_add(&q.env, "A=b");
	CHECK_OK(exec_request_check(&q, &e), &e);
	strv_add(&q.env, "A=b");
	CHECK_ERR(exec_request_check(&q, &e), &e, ERR_TOO_LARGE);
}

/* Each string counts with its end, those of both lists together. */
TEST(all_strings_together_have_a_most)
{
	static char text[EXEC_BYTES_MAX];
	struct err e;

	for (int more = 0; more < 2; more++) {
		cleanup(exec_request_done) struct exec_request q = { 0 };

		memset(text, 'x', sizeof(text) - 1);
		text[EXEC_BYTES_MAX - 2 - 4 - 1 + more] = '\0'; /* "a" and "A=b" are the rest */
		strv_add(&q.argv, "a");
		strv_add(&q.argv, text);
		strv_add(&q.env, "A=b");
		if (more)
			CHECK_ERR(exec_request_check(&q, &e), &e, ERR_TOO_LARGE);
		else
			CHECK_OK(exec_request_check(&q, &e), &e);
	}
}

TEST(an_attach_is_whole_or_refused)
{
	struct exec_attach a = { .id = "x", .offset = { 5, 6 } }, back = { 0 };
	cleanup(buf_done) struct buf b = buf_make(100);
	struct err e;

	exec_attach_encode(&b, &a);
	CHECK_OK(exec_attach_decode(wire_of(&b), &back, &e), &e);
	CHECK_STR(back.id, "x");
	CHECK(back.offset[0] == 5 && back.offset[1] == 6);
	for (size_t len = 0; len < b.len; len++)
		CHECK_ERR(exec_attach_decode(cut(&b, len), &back, &e), &e, ERR_INVALID);
	memcpy(a.id, "..", 3);
	buf_clear(&b);
	exec_attach_encode(&b, &a);
	CHECK_ERR(exec_attach_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
	CHECK_STR(back.id, "x");
}

TEST(an_acknowledgement_is_whole_or_refused)
{
	struct exec_ack a = { { 5, 6 }, true }, back = { 0 };
	cleanup(buf_done) struct buf b = buf_make(100);
	struct err e;

	exec_ack_encode(&b, &a);
	CHECK_OK(exec_ack_decode(wire_of(&b), &back, &e), &e);
	CHECK(back.offset[0] == 5 && back.offset[1] == 6 && back.ended);
	for (size_t len = 0; len < b.len; len++)
		CHECK_ERR(exec_ack_decode(cut(&b, len), &back, &e), &e, ERR_INVALID);
	b.data[b.len - 1] = 0;
	CHECK_OK(exec_ack_decode(wire_of(&b), &back, &e), &e);
	CHECK(!back.ended);
	b.data[b.len - 1] = 2;
	CHECK_ERR(exec_ack_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
}

TEST(every_member_of_an_exit_travels)
{
	struct exec_exit x = { EXEC_EXITED, 1, 2, 3, 4, 5, 6, true, "/w" }, back = { 0 };
	cleanup(buf_done) struct buf b = buf_make(4096);
	struct err e;

	exec_exit_encode(&b, &x);
	CHECK_OK(exec_exit_decode(wire_of(&b), &back, &e), &e);
	CHECK(back.kind == EXEC_EXITED && back.code == 1 && back.signum == 2 && back.wall_us == 3);
	CHECK(back.user_us == 4 && back.system_us == 5 && back.max_rss_kb == 6 && back.restarted);
	CHECK_STR(back.cwd, "/w");
	b.data[1 + 4 + 4 + 4 * 8] = 0;
	CHECK_OK(exec_exit_decode(wire_of(&b), &back, &e), &e);
	CHECK(!back.restarted);
	b.data[1 + 4 + 4 + 4 * 8] = 2;
	CHECK_ERR(exec_exit_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
	b.data[1 + 4 + 4 + 4 * 8] = 1;
	b.data[0] = EXEC_NONE;
	CHECK_ERR(exec_exit_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
	b.data[0] = EXEC_KIND_COUNT - 1;
	CHECK_OK(exec_exit_decode(wire_of(&b), &back, &e), &e);
}

TEST(every_kind_of_end_has_its_word)
{
	static const char *const words[EXEC_KIND_COUNT] = { "none", "exited", "signalled",
							    "timed_out", "oom", "killed",
							    "lost" };

	for (int k = 0; k < EXEC_KIND_COUNT; k++)
		CHECK_STR(exec_kind_name((enum exec_kind)k), words[k]);
}

/* Every mixture of what init can know of an end, and the word for it, written a second time. */
TEST(an_end_has_one_word)
{
	static const int signals[] = { 0, SIGTERM, SIGKILL, SIGSEGV };
	static const enum exec_kind kills[] = { EXEC_NONE, EXEC_KILLED, EXEC_TIMED_OUT };

	for (size_t i = 0; i < 4 * 4 * 3 * 2; i++) {
		struct exec_end end = { .signum = signals[i % 4],
					.asked = signals[i / 4 % 4],
					.killed_as = kills[i / 16 % 3],
					.stopping = i / 48 };
		enum exec_kind word = exec_end_word(&end);

		if (word == EXEC_EXITED)
			CHECK(end.signum == 0);
		else if (word == EXEC_TIMED_OUT)
			CHECK(end.signum != 0 && end.killed_as == EXEC_TIMED_OUT);
		else if (word == EXEC_SIGNALLED)
			CHECK(end.signum != 0 && end.killed_as == EXEC_NONE &&
			      end.asked != end.signum && !(end.stopping && end.signum == SIGTERM));
		else
			CHECK(word == EXEC_KILLED && end.signum != 0 &&
			      end.killed_as != EXEC_TIMED_OUT);
		CHECK((word == EXEC_EXITED) == (end.signum == 0));
	}
}

TEST(the_word_for_an_end_is_that_of_its_reason)
{
	static const struct {
		struct exec_end end;
		enum exec_kind word;
	} rows[] = {
		{ { 0 }, EXEC_EXITED },
		{ { .killed_as = EXEC_TIMED_OUT, .asked = SIGKILL }, EXEC_EXITED },
		{ { .signum = SIGSEGV }, EXEC_SIGNALLED },
		{ { .signum = SIGKILL }, EXEC_SIGNALLED }, /* of others, or of the kernel */
		{ { .signum = SIGKILL, .killed_as = EXEC_TIMED_OUT }, EXEC_TIMED_OUT },
		{ { .signum = SIGKILL, .killed_as = EXEC_KILLED }, EXEC_KILLED },
		{ { .signum = SIGTERM, .asked = SIGTERM }, EXEC_KILLED },
		{ { .signum = SIGKILL, .asked = SIGTERM }, EXEC_SIGNALLED },
		{ { .signum = SIGTERM, .stopping = true }, EXEC_KILLED },
		{ { .signum = SIGKILL, .stopping = true }, EXEC_SIGNALLED },
		{ { .signum = SIGTERM, .asked = 15, .killed_as = EXEC_TIMED_OUT }, EXEC_TIMED_OUT },
	};

	for (size_t i = 0; i < array_len(rows); i++)
		CHECK_INT(exec_end_word(&rows[i].end), rows[i].word);
}

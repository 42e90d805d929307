#include "proto/exec.h"

#include <stdlib.h>

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

/* Viewers of a terminal, and a command that reads or does not. */
#include "berthd/exec/terminal.h"

#include "exec-world.h"
#include "lib/str.h"
#include "test.h"

struct seen {
	int rooms, finished;
	size_t bytes;
};

static bool on_output(void *data, const uint8_t *bytes, size_t len)
{
	(void)bytes;
	((struct seen *)data)->bytes += len;
	return false;
}

static void on_gap(void *data, uint64_t position, uint64_t bytes)
{
	(void)data, (void)position, (void)bytes;
}

static void on_room(void *data)
{
	((struct seen *)data)->rooms++;
}

static void on_finished(void *data, const struct exec_exit *exit, const struct err *why)
{
	(void)exit, (void)why;
	((struct seen *)data)->finished++;
}

static const struct terminal_sink sink = { on_output, on_gap, on_room, on_finished };

static struct terminal_view *view(struct journal *j, struct seen *s)
{
	struct terminal_view *v;
	struct err e;

	*s = (struct seen){ 0 };
	CHECK_OK(terminal_view(loop(), j, 0, &v, &e), &e);
	terminal_view_follow(v, &sink, s);
	return v;
}

static const struct bytes key = { (const uint8_t *)"k", 1 };

TEST(what_is_typed_reaches_the_command_and_then_there_is_room)
{
	struct journal *j = begin_exec("tm_1", EXEC_STDIN | EXEC_PTY);
	struct seen s;
	struct terminal_view *v = view(j, &s);

	CHECK(!terminal_view_input(v, key));
	CHECK(terminal_view_is_waiting(v));
	CHECK_INT(s.rooms, 0); /* never from within */
	CHECK_INT(expect(FRAME_STDIN).len, 1);
	while (s.rooms == 0)
		turn();
	CHECK(!terminal_view_is_waiting(v));
	terminal_view_close(v);
	turn();
	CHECK_INT(j->viewers, 0);
}

TEST(a_command_that_does_not_read_is_not_sent_more)
{
	struct journal *j = begin_exec("tm_1", EXEC_STDIN | EXEC_PTY);
	struct seen s;
	struct terminal_view *v = view(j, &s);
	int sent = 1;

	while (!terminal_view_input(v, key))
		sent++;
	CHECK_INT(sent, 16);
	terminal_view_close(v); /* what still waits comes back to no sink */
	for (int i = 0; i < 20; i++)
		turn();
	CHECK_INT(s.rooms, 0);
	CHECK_INT(j->viewers, 0);
}

TEST(a_size_is_told_and_kept)
{
	struct journal *j = begin_exec("tm_1", EXEC_STDIN | EXEC_PTY);
	struct exec_size size;
	struct seen s;
	struct terminal_view *v = view(j, &s);
	struct err e;

	CHECK_ERR(terminal_size(0, 24, &size, &e), &e, ERR_INVALID);
	CHECK_ERR(terminal_size(80, EXEC_SIZE_MAX + 1LL, &size, &e), &e, ERR_INVALID);
	CHECK_OK(terminal_size(100, 40, &size, &e), &e);
	(void)terminal_view_resize(v, &size);
	(void)expect(FRAME_RESIZE);
	CHECK_INT(j->slot.size.cols, 100);
	terminal_view_close(v);
}

TEST(there_are_only_so_many_viewers_and_none_beyond_the_end)
{
	struct journal *j = begin_exec("tm_1", EXEC_STDIN | EXEC_PTY);
	struct terminal_view *v[64], *more;
	struct err e;

	for (size_t i = 0; i < array_len(v); i++)
		CHECK_OK(terminal_view(loop(), j, 0, &v[i], &e), &e);
	CHECK_ERR(terminal_view(loop(), j, 0, &more, &e), &e, ERR_LIMIT);
	for (size_t i = 0; i < array_len(v); i++)
		terminal_view_close(v[i]);
	CHECK_ERR(terminal_view(loop(), j, 1, &more, &e), &e, ERR_INVALID);
	CHECK_INT(j->viewers, 0);
}

TEST(only_an_exec_on_a_pty_of_this_owner_is_a_terminal)
{
	struct journal *j = begin_exec("tm_1", EXEC_STDIN | EXEC_PTY), *found;
	struct caller me = { loop(), "rq_1", "me" }, stranger = { loop(), "rq_1", "other" };
	struct err e;

	CHECK_OK(terminal_find(&me, SANDBOX, "tm_1", &found, &e), &e);
	CHECK(found == j);
	CHECK_ERR(terminal_find(&stranger, SANDBOX, "tm_1", &found, &e), &e, ERR_NOT_FOUND);
	CHECK_ERR(terminal_find(&me, SANDBOX, "tm_2", &found, &e), &e, ERR_NOT_FOUND);
	j->head.ask.flags = 0;
	CHECK_ERR(terminal_find(&me, SANDBOX, "tm_1", &found, &e), &e, ERR_NOT_FOUND);
}

/* An exec of berthd, and an init that errs. */
#include "berthd/exec/exec.h"

#include <fcntl.h>
#include <unistd.h>

#include "berthd/exec/errand.h"
#include "exec-world.h"
#include "lib/str.h"
#include "test.h"

static void say_started(void)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	frame_add_u32(&frame, FRAME_STARTED, 42);
	say(&frame);
}

static void say_exited(uint32_t code)
{
	cleanup(buf_done) struct buf record = buf_make(EXEC_EXIT_MAX);
	cleanup(buf_done) struct buf frame = buf_make(EXEC_EXIT_MAX + FRAME_HEAD);

	exec_exit_encode(&record, &(struct exec_exit){ .kind = EXEC_EXITED, .code = code });
	frame_add(&frame, FRAME_EXITED, record.data, record.len);
	say(&frame);
}

static void say_error(enum err_code code)
{
	cleanup(buf_done) struct buf frame = buf_make(1024);
	struct err why;

	err_set(&why, code, "standard input after its end");
	frame_add_error(&frame, &why);
	say(&frame);
}

/* ---- the exec ---- */

/* One that runs: init was found, and has said so. */
static struct journal *begin(const char *id, uint32_t flags)
{
	struct journal_head h = { .generation = GENERATION, .ask.flags = flags };
	struct journal *j;
	struct err e;

	world_open();
	CHECK(str_copy(h.owner, sizeof(h.owner), "me"));
	CHECK(str_copy(h.sandbox, sizeof(h.sandbox), SANDBOX));
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), id));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	exec_go_on(loop(), j);
	(void)expect(FRAME_ATTACH);
	say_started();
	while (j->exec->phase != EXEC_RUNNING)
		turn();
	return j;
}

/* It ends with this code, is told so, and has said that its record stands. */
static void end(struct journal *j, uint32_t code)
{
	say_exited(code);
	(void)expect(FRAME_ACK);
	while (j->exec)
		turn();
	CHECK_INT(j->slot.state, JOURNAL_SETTLED);
	CHECK_INT(j->slot.exit.kind, EXEC_EXITED);
	CHECK_INT(j->slot.exit.code, code);
	journal_unref(j);
}

static bool may_move(unsigned from, unsigned to)
{
	return exec_phases.next[from] & PHASE_BIT(to);
}

TEST(every_phase_is_reached_and_left_but_the_first_and_the_last)
{
	for (unsigned to = 0; to < exec_phases.count; to++) {
		unsigned ways = 0;

		CHECK(exec_phases.names[to]);
		for (unsigned from = 0; from < exec_phases.count; from++)
			ways += from != to && may_move(from, to);
		CHECK((ways > 0) == (to != EXEC_DIALING));
		CHECK((exec_phases.next[to] == 0) == (to == EXEC_CLOSED));
	}
	/* Its end is recorded once, and what has ended runs no more. */
	for (unsigned from = EXEC_MEASURING; from < exec_phases.count; from++)
		for (unsigned to = 0; to <= EXEC_RUNNING; to++)
			CHECK(!may_move(from, to));
}

TEST(an_error_of_init_while_it_runs_is_no_end)
{
	static const enum err_code codes[] = { ERR_INVALID, ERR_NOT_FOUND };
	struct journal *j = begin("ex_error", EXEC_STDIN);

	for (size_t i = 0; i < array_len(codes); i++) {
		say_error(codes[i]);
		(void)expect(FRAME_ATTACH); /* it is asked for again */
		CHECK_INT(j->slot.state, JOURNAL_RUNNING);
		CHECK_INT(j->exec->exit.kind, EXEC_NONE);
		say_started();
		while (j->exec->phase != EXEC_RUNNING)
			turn();
	}
	end(j, 3);
}

TEST(an_error_instead_of_its_start_is_its_end)
{
	struct journal *j = begin("ex_gone", 0);

	hang_up();
	(void)expect(FRAME_ATTACH);
	say_error(ERR_NOT_FOUND);
	while (j->exec)
		turn();
	CHECK_INT(j->slot.state, JOURNAL_SETTLED);
	CHECK_INT(j->slot.exit.kind, EXEC_LOST);
	journal_unref(j);
}

/* What a guest says again and again must not be answered each time: it may read none of it. */
TEST(a_killed_command_is_let_go_once_on_a_line)
{
	cleanup(buf_done) struct buf killed = buf_make(64);
	struct journal *j = begin("ex_killed", 0);

	frame_add(&killed, FRAME_KILLED, NULL, 0);
	say(&killed);
	(void)expect(FRAME_GO);
	say_error(ERR_INVALID);
	(void)expect(FRAME_ATTACH);
	say_started();
	say(&killed); /* on another line it is said, and answered, again */
	(void)expect(FRAME_GO);
	say(&killed);
	while (j->exec)
		turn();
	CHECK_INT(j->slot.exit.kind, EXEC_LOST);
	journal_unref(j);
}

/* Otherwise a restart would take back what a client was told. */
TEST(an_end_that_cannot_be_written_is_told_when_it_stands)
{
	struct journal *j = begin("ex_disk", 0);
	int good = dup(j->fd), bad = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(good >= 0 && bad >= 0 && dup2(bad, j->fd) == j->fd);
	say_exited(4);
	while (!j->exec->unwritten)
		turn();
	CHECK_INT(j->slot.state, JOURNAL_RUNNING);
	CHECK_INT(j->slot.exit.kind, EXEC_NONE);
	CHECK(dup2(good, j->fd) == j->fd);
	(void)expect(FRAME_ACK); /* init keeps it until then */
	while (j->exec)
		turn();
	CHECK_INT(j->slot.state, JOURNAL_SETTLED);
	CHECK_INT(j->slot.exit.code, 4);
	close(good);
	close(bad);
	journal_unref(j);
}

struct given {
	int times;
	bool failed;
	struct err e;
};

static void on_given(struct errand *e, const struct err *why)
{
	struct given *g = e->data;

	g->times++;
	g->failed = why;
	if (why)
		g->e = *why;
}

static struct given give(struct journal *j, const char *text, bool last)
{
	cleanup(buf_done) struct buf input = buf_make(64);
	struct given g = { 0 };
	struct errand e = { .from = loop(), .journal = j, .done = on_given, .data = &g };

	buf_adds(&input, text);
	e.input = input;
	e.input_end = last;
	errand_send(&e);
	while (g.times == 0)
		turn();
	return g;
}

TEST(input_after_its_end_is_refused_and_does_not_reach_init)
{
	struct journal *j = begin("ex_input", EXEC_STDIN);
	struct given g;

	CHECK(!give(j, "a", true).failed);
	CHECK_INT(expect(FRAME_STDIN).len, 1);
	(void)expect(FRAME_STDIN_END);
	g = give(j, "b", false);
	CHECK(g.failed);
	CHECK_INT(g.e.code, ERR_CONFLICT);
	exec_send(j->exec, FRAME_STDIN, "c", 1); /* as of an upgraded connection */
	CHECK(!give(j, "", true).failed);
	(void)expect(FRAME_STDIN_END);
	end(j, 0);
}

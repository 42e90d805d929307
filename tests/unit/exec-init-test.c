/* An exec of berthd, and an init that errs. */
#include "berthd/exec/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "berthd/exec/code-phase.h"
#include "berthd/exec/mailbox.h"
#include "exec-world.h"
#include "lib/str.h"
#include "lib/time.h"
#include "test.h"

#define WAIT_MS 20000

static void say_error(enum err_code code)
{
	cleanup(buf_done) struct buf frame = buf_make(1024);
	struct err why;

	err_set(&why, code, "standard input after its end");
	frame_add_error(&frame, &why);
	say(&frame);
}

/* ---- the exec ---- */

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

static bool may_move(const struct phase_table *t, unsigned from, unsigned to)
{
	return t->next[from] & PHASE_BIT(to);
}

/* All but the first are reached, all but the last are left, and none before `over` after it. */
static void check_phases(const struct phase_table *t, unsigned over)
{
	for (unsigned to = 0; to < t->count; to++) {
		unsigned ways = 0;

		CHECK(t->names[to]);
		for (unsigned from = 0; from < t->count; from++)
			ways += from != to && may_move(t, from, to);
		CHECK((ways > 0) == (to != 0));
		CHECK((t->next[to] == 0) == (to == t->count - 1));
	}
	for (unsigned from = over; from < t->count; from++)
		for (unsigned to = 0; to < over; to++)
			CHECK(!may_move(t, from, to));
}

TEST(every_phase_is_reached_and_left_but_the_first_and_the_last)
{
	check_phases(&exec_phases, EXEC_MEASURING); /* its end is recorded once */
	check_phases(&code_phases, CODE_SETTLING);
}

TEST(an_error_of_init_while_it_runs_is_no_end)
{
	static const enum err_code codes[] = { ERR_INVALID, ERR_NOT_FOUND };
	struct journal *j = begin_exec("ex_error", EXEC_STDIN);

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
	struct journal *j = begin_exec("ex_gone", 0);

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
	struct journal *j = begin_exec("ex_killed", 0);

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
	struct journal *j = begin_exec("ex_disk", 0);
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

/* Nothing is left there that would have to be told. */
TEST(an_end_whose_acknowledgement_cannot_be_sent_is_settled)
{
	struct journal *j = begin_exec("ex_pipe", 0);

	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL); /* as berthd */
	say_exited(5);
	hang_up();
	while (j->exec)
		turn();
	CHECK_INT(j->slot.state, JOURNAL_SETTLED);
	CHECK_INT(j->slot.exit.code, 5);
	journal_unref(j);
}

/* ---- one whose client does not keep up ---- */

static bool take_and_be_full(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	(void)type, (void)data;
	*(size_t *)t->data += len;
	return true;
}

static void on_slow_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	(void)t, (void)exit, (void)why;
	CHECK(false); /* both are closed before */
}

static const struct tail_events slow_events = { .output = take_and_be_full,
						.finished = on_slow_finished };

static void say_output(const char *text)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	frame_add(&frame, FRAME_STDOUT, text, strlen(text));
	say(&frame);
}

TEST(a_command_that_waits_for_its_client_goes_on_as_soon_as_another_one_reads)
{
	struct journal *j = begin_exec("ex_slow", 0);
	size_t taken = 0, read = 0;
	struct tail *client = tail_new(loop(), &slow_events, &taken);
	struct tail *reader = tail_new(other(), &slow_events, &read);
	struct exec *x = j->exec;

	x->keep = false; /* as one that was begun for this client */
	x->client = client;
	tail_expect(client, j, x, exec_caught_up);
	say_output("a");
	while (!x->paused)
		turn();
	say_output("b");
	for (int i = 0; i < 20; i++)
		turn();
	CHECK_INT(j->slot.offset[0], 1);
	CHECK_INT(taken, 1);
	tail_follow(reader, j, 0);
	while (j->slot.offset[0] < 2)
		turn();
	CHECK(!x->paused && client->full);
	tail_close(reader);
	tails_run(other());
	x->keep = true;
	exec_abandon(client);
	tail_close(client);
	end(j, 3);
}

/* ---- one that is refused ---- */

struct client {
	int times;
	enum err_code code;
};

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct client *c = t->data;

	CHECK(!exit && why);
	c->times++;
	c->code = why->code;
	exec_abandon(t); /* as all clients do */
	tail_close(t);
}

static const struct tail_events client_events = { .finished = on_finished };

/* The key of another request: nothing is begun. */
static struct tail *begin_refused(struct client *c)
{
	struct caller by = { loop(), "test", "me" };
	struct exec_begin ask = { .sandbox = SANDBOX, .key = "key", .body = "another" };
	struct tail *t = tail_new(loop(), &client_events, c);

	memcpy(ask.ask.id, "ex_keyed", sizeof("ex_keyed"));
	strv_add(&ask.ask.argv, "true");
	exec_begin(&by, &ask, t);
	return t;
}

static void make_keyed(void)
{
	struct journal_head h = { .generation = GENERATION, .key = "key", .body = "body" };
	struct journal *j;
	struct err e;

	world_open();
	memcpy(h.owner, "me", sizeof("me"));
	memcpy(h.sandbox, SANDBOX, sizeof(SANDBOX));
	memcpy(h.ask.id, "ex_keyed", sizeof("ex_keyed"));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	journal_unref(j);
}

static void some_turns(void)
{
	for (int i = 0; i < 5; i++)
		turn();
}

TEST(a_refusal_is_told_by_the_loop_and_not_from_within)
{
	struct client c = { 0 };

	make_keyed();
	(void)begin_refused(&c);
	CHECK_INT(c.times, 0);
	some_turns();
	CHECK_INT(c.times, 1);
	CHECK_INT(c.code, ERR_CONFLICT);
}

TEST(a_client_that_left_hears_of_no_refusal)
{
	struct client c = { 0 };
	struct tail *t;

	make_keyed();
	t = begin_refused(&c);
	exec_abandon(t);
	tail_close(t);
	some_turns();
	CHECK_INT(c.times, 0);
}

/* ---- its mailbox ---- */

struct answer {
	int times;
	bool failed;
	struct err e;
};

static void on_answer(void *data, const struct err *why)
{
	struct answer *a = data;

	CHECK(current() == other()); /* on the loop that sent it, and from no other place */
	a->times++;
	a->failed = why;
	if (why)
		a->e = *why;
}

static struct answer wait_for(const struct answer *a)
{
	uint64_t end = time_mono_ms() + WAIT_MS;

	while (a->times == 0 && time_mono_ms() < end)
		turn();
	CHECK_INT(a->times, 1);
	return *a;
}

static struct answer give(struct journal *j, const char *text, bool last)
{
	struct buf input = buf_make(64);
	struct answer a = { 0 };

	buf_adds(&input, text);
	mail_input(other(), j, &input, last, on_answer, &a);
	return wait_for(&a);
}

static struct bytes text_bytes(const char *text)
{
	return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

TEST(mail_of_another_loop_is_delivered_in_its_order_and_answered_there)
{
	struct journal *j = begin_exec("ex_mail", EXEC_STDIN | EXEC_PTY);
	struct answer keys = { 0 }, size = { 0 }, signal = { 0 };
	cleanup(buf_done) struct buf signalled = buf_make(64);

	mail_keys(other(), j, text_bytes("ab"), on_answer, &keys);
	mail_size(other(), j, &(struct exec_size){ 80, 25 }, on_answer, &size);
	mail_signal(other(), j, 15, on_answer, &signal);
	CHECK_INT(keys.times + size.times + signal.times, 0);
	CHECK_INT(expect(FRAME_STDIN).len, 2);
	CHECK_INT(expect(FRAME_RESIZE).len, 8);
	(void)expect(FRAME_SIGNAL);
	CHECK(!wait_for(&keys).failed && !wait_for(&size).failed);
	CHECK_INT(signal.times, 0); /* init has not said that it delivered it */
	frame_add_u32(&signalled, FRAME_SIGNALLED, 1);
	say(&signalled);
	CHECK(!wait_for(&signal).failed);
	end(j, 0);
}

/* Keys of which init takes nothing: more of them than may be on their way. */
static char *many_keys(size_t *len)
{
	char *keys = xcalloc(1, FRAME_PAYLOAD_MAX + 1);

	memset(keys, 'k', FRAME_PAYLOAD_MAX);
	*len = FRAME_PAYLOAD_MAX;
	return keys;
}

/* Three that are sent, and one that waits. */
static void fill(struct journal *j, struct answer *waits)
{
	struct answer sent[3] = { 0 };
	size_t len;
	cleanup(free_ptr) char *keys = many_keys(&len);

	for (size_t i = 0; i < array_len(sent); i++)
		mail_keys(other(), j, text_bytes(keys), on_answer, &sent[i]);
	mail_keys(other(), j, text_bytes("last"), on_answer, waits);
	for (size_t i = 0; i < array_len(sent); i++) {
		CHECK(!wait_for(&sent[i]).failed);
		CHECK_INT(expect(FRAME_STDIN).len, len);
	}
	CHECK_INT(waits->times, 0);
	CHECK_INT(j->exec->mail_count, 1);
}

TEST(keys_wait_until_the_command_has_read_what_came_before)
{
	struct journal *j = begin_exec("ex_keys", EXEC_STDIN | EXEC_PTY);
	cleanup(buf_done) struct buf taken_frame = buf_make(64);
	struct answer waits = { 0 };

	fill(j, &waits);
	frame_add_u32(&taken_frame, FRAME_TAKEN, FRAME_PAYLOAD_MAX);
	say(&taken_frame);
	CHECK_INT(expect(FRAME_STDIN).len, 4);
	CHECK(!wait_for(&waits).failed);
	end(j, 0);
}

TEST(mail_that_waits_is_dropped_for_its_sender_alone)
{
	struct journal *j = begin_exec("ex_drop", EXEC_STDIN | EXEC_PTY);
	struct answer waits = { 0 }, stays = { 0 };

	fill(j, &waits);
	mail_keys(other(), j, text_bytes("stays"), on_answer, &stays);
	mail_drop(other(), j, &waits);
	CHECK(wait_for(&waits).failed);
	CHECK_INT(waits.e.code, ERR_BUSY);
	CHECK_INT(stays.times, 0);
	CHECK_INT(j->exec->mail_count, 1);
	say_exited(0); /* what waits then is answered as ended */
	CHECK(wait_for(&stays).failed);
	CHECK_INT(stays.e.code, ERR_CONFLICT);
	(void)expect(FRAME_ACK);
	while (j->exec)
		turn();
	journal_unref(j);
}

TEST(input_after_its_end_is_refused_and_does_not_reach_init)
{
	struct journal *j = begin_exec("ex_input", EXEC_STDIN);
	struct answer g;

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

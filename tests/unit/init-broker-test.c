/* What is said at the broker between pid 1 and an operation's process, and what pid 1 remembers. */
#include "init/pid1-broker.h"

#include <stdlib.h>
#include <unistd.h>

#include "init/unseen.h"
#include "test.h"

struct ends {
	struct broker ours;
	int pid1;
};

static struct ends open_ends(void)
{
	int pair[2];

	CHECK(broker_pair(pair) == 0);
	return (struct ends){ { .fd = pair[0] }, pair[1] };
}

static void close_ends(struct ends *e)
{
	close(e->ours.fd);
	close(e->pid1);
}

/* pid 1 speaks before it is asked: the number of the first question is 1. */
static void say(const struct ends *e, enum broker_word word, uint32_t number)
{
	struct broker_packet p = { .word = word, .number = number, .asked = number };

	CHECK(broker_send(e->pid1, &p, -1) == 0);
}

static void push(const struct ends *e, enum broker_word word, const char *id)
{
	struct broker_packet p = { .word = word };
	int with[2];

	snprintf(p.attach.id, sizeof(p.attach.id), "%s", id);
	CHECK(pipe(with) == 0);
	CHECK(broker_send(e->pid1, &p, with[0]) == 0);
	close(with[0]);
	close(with[1]);
}

static void check_take(struct ends *e, enum broker_word word, const char *id)
{
	struct broker_packet p;
	int fd = -1;

	CHECK_INT(broker_take(&e->ours, &p, &fd), 1);
	CHECK_INT(p.word, word);
	CHECK_STR(p.attach.id, id);
	CHECK(fd >= 0);
	close(fd);
}

TEST(what_is_pushed_before_the_answer_is_not_the_answer_and_not_lost)
{
	struct ends e = open_ends();
	struct broker_packet ask = { .word = BROKER_GIVE }, p;
	int fd = -1;

	push(&e, BROKER_KILL_LEFT, "one");
	push(&e, BROKER_GIVE, "two");
	say(&e, BROKER_NO, 1);
	push(&e, BROKER_GIVE, "three");
	CHECK_INT(broker_ask(&e.ours, &ask, -1), BROKER_NO);
	CHECK_INT(ask.asked, 1);
	CHECK(broker_holds(&e.ours));
	check_take(&e, BROKER_KILL_LEFT, "one");
	check_take(&e, BROKER_GIVE, "two");
	CHECK(!broker_holds(&e.ours));
	check_take(&e, BROKER_GIVE, "three");
	CHECK_INT(broker_take(&e.ours, &p, &fd), 0);
	close_ends(&e);
}

TEST(the_answer_to_another_question_is_not_taken)
{
	struct ends e = open_ends();
	struct broker_packet ask = { .word = BROKER_TAKE };

	say(&e, BROKER_YES, 7); /* the answer to one that was given up, say */
	say(&e, BROKER_NO, 1);
	CHECK_INT(broker_ask(&e.ours, &ask, -1), BROKER_NO);
	say(&e, BROKER_NO, 1);
	say(&e, BROKER_BESIDE, 2);
	CHECK_INT(broker_ask(&e.ours, &ask, -1), BROKER_BESIDE);
	CHECK(!broker_holds(&e.ours));
	close_ends(&e);
}

TEST(what_is_held_has_a_most)
{
	struct ends e = open_ends();
	struct broker_packet ask = { .word = BROKER_TAKE };
	struct broker_packet p;
	int fd, n = 0;

	for (int i = 0; i < BROKER_HELD_MAX + 3; i++)
		push(&e, BROKER_GIVE, "one");
	say(&e, BROKER_YES, 1);
	CHECK_INT(broker_ask(&e.ours, &ask, -1), BROKER_YES);
	while (broker_take(&e.ours, &p, &fd) > 0) {
		close(fd);
		n++;
	}
	CHECK_INT(n, BROKER_HELD_MAX);
	close_ends(&e);
}

static void count_late(void *data, int fd)
{
	++*(int *)data;
	close(fd);
}

TEST(one_that_leaves_gets_what_was_on_its_way)
{
	struct ends e = open_ends();
	struct broker_packet ask = { .word = BROKER_TAKE };
	int late = 0;

	push(&e, BROKER_GIVE, "one");
	say(&e, BROKER_YES, 1);
	CHECK_INT(broker_ask(&e.ours, &ask, -1), BROKER_YES);
	push(&e, BROKER_GIVE, "two");
	say(&e, BROKER_YES, 1); /* not to this question */
	push(&e, BROKER_GIVE, "three");
	say(&e, BROKER_YES, 2);
	broker_leave(&e.ours, count_late, &late);
	CHECK_INT(late, 3);
	close_ends(&e);
}

TEST(what_was_not_seen_is_remembered_and_nothing_else_is_doubted)
{
	struct unseen *u = xcalloc(1, sizeof(*u));
	char id[EXEC_ID_SIZE];

	CHECK(!unseen_has(u, ""));
	CHECK(!unseen_has(u, "x0"));
	for (int i = 0; i < UNSEEN_MAX; i++) {
		snprintf(id, sizeof(id), "x%d", i);
		unseen_add(u, id);
		unseen_add(u, id);
	}
	CHECK(unseen_has(u, "") && unseen_has(u, "x0") && unseen_has(u, id));
	CHECK(!unseen_has(u, "other"));
	unseen_add(u, "one too many");
	CHECK(unseen_has(u, "one too many"));
	CHECK(unseen_has(u, "other")); /* it may be one of those there was no room for */
	unseen_clear(u);
	CHECK(!unseen_has(u, "") && !unseen_has(u, "x0") && !unseen_has(u, "other"));
	free(u);
}

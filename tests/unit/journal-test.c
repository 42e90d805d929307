/* The journal: what was appended is there, half a frame is not, what is not kept is counted. */
#include "api/exec/journal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/exec/trim.h"
#include "lib/file.h"
#include "lib/str.h"
#include "test.h"

#define SANDBOX "sb_c1_0123456789abcdefghij"

static struct journals js;
static char dir[] = "journal-test-XXXXXX";

static void open_all(uint64_t cap)
{
	static bool made;
	struct err e;

	if (!made)
		CHECK(mkdtemp(dir));
	made = true;
	CHECK_OK(journals_open(&js, dir, cap, &e), &e);
}

static struct journal *make(const char *id)
{
	struct journal_head h = { .sandbox = SANDBOX, .owner = "me", .generation = 7 };
	struct journal *j;
	struct err e;

	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), id));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	return j;
}

static struct journal *find(const char *id)
{
	struct journal *j;
	struct err e;

	CHECK_OK(journal_find(&js, SANDBOX, id, &j, &e), &e);
	return j;
}

TEST(what_was_appended_is_there_after_a_restart)
{
	struct journal_view v;
	struct journal *j;
	const struct exec_exit ended = { .kind = EXEC_EXITED, .code = 3 };
	struct exec_use use = {
		.known = true,
		.cpu_us = 7,
		.hit = true,
		.limit = LIMIT_CPU_MS,
		.peak = 6,
	};
	struct err e;

	open_all(1 << 20);
	j = make("again");
	CHECK(journal_append(j, 0, "hello", 5, false));
	CHECK(journal_append(j, 1, "no", 2, false));
	CHECK(pwrite(j->fd, "half a frame", 12, (off_t)j->written) == 12);
	journal_unref(j);
	journals_close(&js);

	open_all(1 << 20);
	j = find("again");
	CHECK_STR(j->head.ask.argv.items[0], "true");
	CHECK_INT(j->head.generation, 7);
	CHECK_OK(journal_recover(j, &e), &e);
	journal_look(j, &v);
	CHECK_INT(v.slot.offset[0], 5);
	CHECK_INT(v.slot.offset[1], 2);
	CHECK_INT(v.slot.recorded, 7);
	CHECK_OK(journal_end(j, &ended, &use, true, &e), &e);
	journal_unref(j);
	j = find("again");
	CHECK_INT(j->slot.state, JOURNAL_ENDED);
	CHECK_INT(j->slot.exit.code, 3);
	CHECK_INT(j->slot.use.cpu_us, 7);
	CHECK_INT(j->slot.use.limit, LIMIT_CPU_MS);
	CHECK_INT(j->slot.use.peak, 6);
	journal_remove(j);
	journal_unref(j);
	journals_close(&js);
}

TEST(what_is_beyond_the_cap_is_counted_exactly)
{
	struct journal_view v;
	struct journal *j;
	struct err e;

	open_all(10);
	j = make("capped");
	CHECK(journal_append(j, 0, "0123456789", 10, false));
	CHECK(journal_is_full(j));
	CHECK(journal_append(j, 0, "late", 4, true)); /* somebody has not read it yet */
	CHECK(!journal_append(j, 1, "gone", 4, false));
	CHECK(!journal_append(j, 0, "gone too", 8, true)); /* no hole in the middle */
	CHECK_OK(journal_save(j, &e), &e);
	journal_unref(j);
	journals_close(&js);

	open_all(10);
	j = find("capped");
	CHECK_OK(journal_recover(j, &e), &e);
	journal_look(j, &v);
	CHECK_INT(v.slot.offset[0], 22);
	CHECK_INT(v.slot.offset[1], 4);
	CHECK_INT(v.slot.recorded, 14);
	CHECK(!journal_append(j, 1, "x", 1, false));
	journal_remove(j);
	journal_unref(j);
	journals_close(&js);
}

static void once(void)
{
	struct journal_head h = { .sandbox = SANDBOX };
	struct journal *j, *again;
	struct err e;

	j = make("once");
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), "once"));
	CHECK(journal_create(&js, &h, &again, &e) < 0);
	CHECK_INT(e.code, ERR_CONFLICT);
	CHECK(journal_find(&js, SANDBOX, "../once", &again, &e) < 0);
	CHECK(journal_find(&js, "../journal", "once", &again, &e) < 0);
	again = find("once");
	CHECK(again == j);
	journal_unref(again);
	journal_remove(j);
	journal_unref(j);
}

static int spares(void)
{
	int n;

	pthread_mutex_lock(&js.spares.lock);
	n = js.spares.count;
	pthread_mutex_unlock(&js.spares.lock);
	return n;
}

TEST(an_id_is_used_once)
{
	open_all(10);
	for (int i = 0; i < 10000 && spares() < SPARES_MAX; i++)
		usleep(1000);
	CHECK_INT(spares(), SPARES_MAX);
	once();
	spares_close(&js.spares); /* and the same without */
	CHECK_INT(spares_take(&js.spares), -1);
	once();
	journals_close(&js);
}

TEST(the_oldest_that_have_ended_go_first)
{
	struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	static const char *const ids[] = { "old", "runs", "new" };
	struct err e;

	open_all(1 << 20);
	for (size_t i = 0; i < 3; i++) {
		struct journal *j = make(ids[i]);

		CHECK(journal_append(j, 0, dir, sizeof(dir), false));
		if (i != 1) {
			struct exec_exit end = { .kind = EXEC_EXITED };

			CHECK_OK(journal_end(j, &end, &(struct exec_use){ 0 }, true, &e), &e);
			journal_settle(j);
		}
		times[1].tv_sec = i == 2 ? 3000 : 1000 + (time_t)i;
		CHECK(futimens(j->fd, times) == 0);
		journal_unref(j);
	}
	CHECK_INT(journals_trim(&js, 1 << 30), 0);
	CHECK_INT(journals_trim(&js, 20000), 1); /* each takes two blocks */
	journal_unref(find("runs"));
	journal_unref(find("new"));
	CHECK_INT(journals_trim(&js, 0), 1);
	journal_unref(find("runs"));
	CHECK_OK(file_remove_tree(AT_FDCWD, dir, &e), &e);
	journals_close(&js);
}

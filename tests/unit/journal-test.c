/* The journal: what was appended is there, half a frame is not, what is not kept is counted. */
#include "berthd/journal/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "berthd/journal/journal-expire.h"
#include "lib/file.h"
#include "lib/str.h"
#include "lib/time.h"
#include "test.h"

#define SANDBOX "sb_c1_0123456789abcdefghij"

static struct journals js;
static char dir[] = "journal-test-XXXXXX";

static void remove_dir(void)
{
	struct err ignored;

	(void)!file_remove_tree(AT_FDCWD, dir, &ignored);
}

static void open_all(uint64_t cap)
{
	static bool made;
	struct err e;

	if (!made)
		CHECK(mkdtemp(dir) && atexit(remove_dir) == 0);
	made = true;
	CHECK_OK(journals_open(&js, dir, cap, &e), &e);
}

static struct journal *make_of(const char *owner, const char *sandbox, const char *id)
{
	struct journal_head h = { .generation = 7 };
	struct journal *j;
	struct err e;

	CHECK(str_copy(h.owner, sizeof(h.owner), owner));
	CHECK(str_copy(h.sandbox, sizeof(h.sandbox), sandbox));
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), id));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	return j;
}

static struct journal *make(const char *id)
{
	return make_of("me", SANDBOX, id);
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
	struct exec_usage use = {
		.known = true,
		.cpu_us = 7,
		.disk_at_ms = 8,
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
	CHECK_INT(j->slot.use.disk_at_ms, 8);
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

	open_all(JOURNAL_FRAME + 10);
	j = make("capped");
	CHECK(journal_append(j, 0, "0123456789", 10, false));
	CHECK(journal_is_full(j));
	CHECK(journal_append(j, 0, "late", 4, true)); /* a reader has not got it yet */
	CHECK(!journal_append(j, 1, "gone", 4, false));
	CHECK(!journal_append(j, 0, "gone too", 8, true)); /* no hole in the middle */
	CHECK_OK(journal_save(j, &e), &e);
	journal_unref(j);
	journals_close(&js);

	open_all(JOURNAL_FRAME + 10);
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

TEST(what_is_beyond_the_cap_is_counted_on_either_stream)
{
	for (int stream = 0; stream < 2; stream++) {
		struct journal_view v;
		struct journal *j;
		struct err e;

		open_all(JOURNAL_FRAME + 10);
		j = make("one-stream");
		CHECK(journal_append(j, stream, "0123456789", 10, false));
		CHECK(!journal_append(j, stream, "gone", 4, false));
		CHECK_OK(journal_save(j, &e), &e);
		journal_unref(j);
		j = find("one-stream");
		CHECK_OK(journal_recover(j, &e), &e);
		journal_look(j, &v);
		CHECK_INT(v.slot.offset[stream], 14);
		CHECK_INT(v.slot.offset[1 - stream], 0);
		CHECK_INT(v.slot.recorded, 10);
		journal_remove(j);
		journal_unref(j);
		journals_close(&js);
	}
}

TEST(nothing_is_recorded_from_the_cap_on)
{
	struct journal *j;

	open_all(JOURNAL_FRAME + 10);
	j = make("exact");
	CHECK(journal_append(j, 0, "012345678", 9, false));
	CHECK(!journal_is_full(j));
	CHECK(journal_append(j, 0, "9+", 2, false));
	CHECK(!journal_append(j, 0, "x", 1, false));
	CHECK_INT(j->slot.recorded, 11);
	journal_remove(j);
	journal_unref(j);

	j = make("full");
	CHECK(journal_append(j, 0, "0123456789", 10, false));
	CHECK(!journal_append(j, 0, "x", 1, false)); /* at the cap, and not past it */
	journal_remove(j);
	journal_unref(j);
	journals_close(&js);
}

TEST(the_heads_of_small_pieces_count_to_the_cap)
{
	struct journal *j;
	struct stat st;
	int pieces = 0;

	open_all(100 * (JOURNAL_FRAME + 1));
	j = make("pieces");
	while (journal_append(j, 0, "x", 1, false))
		pieces++;
	CHECK_INT(pieces, 100);
	CHECK(journal_is_full(j));
	CHECK(fstat(j->fd, &st) == 0);
	CHECK_INT((uint64_t)st.st_size - j->frames_at, js.cap);
	journal_remove(j);
	journal_unref(j);
	journals_close(&js);
}

static void cut(const char *id, off_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/journal/%s/%s", dir, SANDBOX, id);
	CHECK_INT(truncate(path, size), 0);
}

/* A crash of the host may leave a file of any length. */
TEST(a_journal_cut_in_its_head_is_told_and_one_cut_later_has_its_whole_frames)
{
	static const struct {
		int stream;
		const char *text;
	} frames[] = { { 0, "one" }, { 1, "three" }, { 0, "x" } };
	uint64_t ends[3], head, at;
	struct journal_view v;
	struct journal *j;
	struct err e;

	open_all(1 << 20);
	j = make("cut");
	head = j->written;
	for (size_t i = 0; i < 3; i++) {
		CHECK(journal_append(j, frames[i].stream, frames[i].text, strlen(frames[i].text),
				     false));
		ends[i] = j->written;
	}
	journal_unref(j);
	for (at = ends[2]; at >= head; at--) {
		uint64_t offset[2] = { 0 };

		cut("cut", (off_t)at);
		for (size_t i = 0; i < 3 && ends[i] <= at; i++)
			offset[frames[i].stream] += strlen(frames[i].text);
		j = find("cut");
		CHECK_OK(journal_recover(j, &e), &e);
		journal_look(j, &v);
		CHECK_INT(v.slot.offset[0], offset[0]);
		CHECK_INT(v.slot.offset[1], offset[1]);
		CHECK_INT(v.slot.recorded, offset[0] + offset[1]);
		journal_unref(j);
	}
	for (; at > 0; at--) {
		cut("cut", (off_t)at);
		CHECK_ERR(journal_find(&js, SANDBOX, "cut", &j, &e), &e, ERR_INTERNAL);
	}
	journals_close(&js);
}

/* The name of a sandbox whose journal of that id is in the same bucket as SANDBOX's. */
static void neighbour_of(const char *id, char *to, size_t size)
{
	uint32_t want = (str_hash(SANDBOX) * 31 + str_hash(id)) % JOURNALS_BUCKETS;

	for (int i = 0; i < 1000000; i++) {
		snprintf(to, size, "sb_c1_%020d", i);
		if ((str_hash(to) * 31 + str_hash(id)) % JOURNALS_BUCKETS == want)
			return;
	}
	test_fail(__FILE__, __LINE__, "no sandbox shares the bucket of %s", id);
}

TEST(one_id_in_two_sandboxes_is_two_journals)
{
	char other[SANDBOX_ID_SIZE];
	struct journal *a, *b, *found;
	struct err e;

	open_all(100);
	neighbour_of("same", other, sizeof(other));
	a = make("same");
	b = make_of("me", other, "same");
	CHECK(a != b);
	CHECK(find("same") == a);
	journal_unref(a);
	CHECK_OK(journal_find(&js, other, "same", &found, &e), &e);
	CHECK(found == b);
	journal_unref(b);
	journal_unref(a);
	journal_unref(b);
	journals_close(&js);
}

TEST(journals_are_for_their_user_alone)
{
	struct stat st;
	char path[128];

	open_all(100);
	snprintf(path, sizeof(path), "%s/journal", dir);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0700);
	journals_close(&js);
	CHECK_INT(js.dir, -1);
}

/* Not ENOSPC, which is told in words of its own. */
TEST(a_journal_that_cannot_be_written_is_an_error_of_the_host)
{
	struct journal_head h = { .sandbox = SANDBOX };
	struct rlimit none = { 0, RLIM_INFINITY };
	struct journal *j;
	struct err e = { 0 };

	open_all(100);
	tmpfile_pool_close(&js.spares);
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), "never"));
	strv_add(&h.ask.argv, "true");
	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(getrlimit(RLIMIT_FSIZE, &none), 0);
	none.rlim_cur = 0;
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &none), 0);
	CHECK(journal_create(&js, &h, &j, &e) < 0);
	CHECK_STR(e.reason ? e.reason : "", "");
	CHECK(strstr(e.msg, "make the journal " SANDBOX "/never"));
	journal_head_done(&h);
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

static void wait_for_spares(void)
{
	for (int i = 0; i < 30000 && spares() < SPARES_MAX; i++)
		usleep(1000);
	CHECK_INT(spares(), SPARES_MAX);
}

/* All files that were made ahead are on a disk without room. */
TEST(that_a_disk_has_no_room_for_a_journal_is_said_so)
{
	struct journal_head h = { .sandbox = SANDBOX };
	int full = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct err e = { 0 };
	struct journal *j;

	CHECK(full >= 0);
	open_all(100);
	wait_for_spares();
	for (int i = 0; i < SPARES_MAX; i++)
		CHECK(dup3(full, js.spares.fds[i], O_CLOEXEC) >= 0);
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), "none"));
	strv_add(&h.ask.argv, "true");
	CHECK_ERR(journal_create(&js, &h, &j, &e), &e, ERR_LIMIT);
	CHECK_STR(e.reason, "no_space");
	CHECK_INT(e.status, 507);
	CHECK_ERR(journal_find(&js, SANDBOX, "none", &j, &e), &e, ERR_NOT_FOUND);
	journal_head_done(&h);
	close(full);
	journals_close(&js);
}

TEST(an_id_is_used_once)
{
	open_all(10);
	wait_for_spares();
	once();
	tmpfile_pool_close(&js.spares); /* and the same without */
	CHECK_INT(tmpfile_pool_take(&js.spares), -1);
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

			CHECK_OK(journal_end(j, &end, &(struct exec_usage){ 0 }, true, &e), &e);
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
	journals_close(&js);
}

TEST(what_is_no_journal_is_neither_found_nor_taken_for_one)
{
	struct journal *j;
	char path[128];
	struct err e;

	open_all(100);
	snprintf(path, sizeof(path), "%s/journal/%s", dir, SANDBOX);
	CHECK_INT(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/journal/%s/cut", dir, SANDBOX);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK_ERR(journal_find(&js, SANDBOX, "cut", &j, &e), &e, ERR_INTERNAL);
	CHECK(strstr(e.msg, SANDBOX "/cut"));
	CHECK_ERR(journal_find(&js, SANDBOX, "none", &j, &e), &e, ERR_NOT_FOUND);
	CHECK_ERR(journal_find(&js, SANDBOX, "../x", &j, &e), &e, ERR_INVALID);
	CHECK_ERR(journal_find(&js, "../x", "cut", &j, &e), &e, ERR_INVALID);
	CHECK_INT(unlink(path), 0);
	journals_close(&js);
}

/* What it tells of may be alive: one that was taken for absent could be started twice. */
TEST(one_that_cannot_be_opened_is_not_absent)
{
	struct rlimit files;
	struct journal *j;
	char path[128];
	struct err e;

	open_all(100);
	journal_unref(make("shut"));
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = 0; /* EMFILE */
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &files), 0);
	CHECK_ERR(journal_find(&js, SANDBOX, "shut", &j, &e), &e, ERR_BUSY);
	CHECK_INT(journals_each(&js, NULL, NULL, NULL), -1);
	CHECK_INT(journals_each(&js, SANDBOX, NULL, NULL), -1);
	files.rlim_cur = files.rlim_max;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &files), 0);
	journal_unref(find("shut"));
	snprintf(path, sizeof(path), "%s/journal/%s/no-file", dir, SANDBOX);
	CHECK_INT(mkdir(path, 0700), 0); /* EISDIR: an error of the host */
	CHECK_ERR(journal_find(&js, SANDBOX, "no-file", &j, &e), &e, ERR_INTERNAL);
	CHECK_INT(rmdir(path), 0);
	journals_close(&js);
}

/* Found twice it is one, and lives until the last of them lets it go. */
TEST(a_journal_is_held_once)
{
	struct journal *a, *b;

	open_all(100);
	a = make("held");
	b = find("held");
	CHECK(a == b);
	CHECK_INT(a->refs, 2);
	CHECK(journal_ref(a) == a);
	CHECK_INT(a->refs, 3);
	journal_unref(a);
	journal_unref(a);
	CHECK_INT(b->refs, 1);
	CHECK(find("held") == b);
	journal_unref(b);
	journal_remove(b);
	journal_unref(b);
	journal_unref(NULL);
	journals_close(&js);
}

TEST(a_journal_that_is_let_go_keeps_no_file_open)
{
	struct journal *j;
	int fd;

	open_all(100);
	tmpfile_pool_close(&js.spares); /* else its thread might open the same number */
	j = make("let-go");
	fd = j->fd;
	CHECK(fcntl(fd, F_GETFD) >= 0);
	journal_unref(j);
	CHECK(fcntl(fd, F_GETFD) < 0);
	journals_close(&js);
}

static int count_until_two(void *data, const char *sandbox, const char *id)
{
	CHECK_STR(sandbox, SANDBOX);
	CHECK(strlen(id) > 0);
	return ++*(int *)data < 2 ? 0 : -1;
}

TEST(a_visit_that_fails_is_the_last_and_is_told)
{
	open_all(100);
	for (int i = 0; i < 3; i++)
		journal_unref(make((const char *[]){ "a", "b", "c" }[i]));
	for (int all = 0; all < 2; all++) {
		int seen = 0;

		CHECK_INT(journals_each(&js, all ? NULL : SANDBOX, count_until_two, &seen), -1);
		CHECK_INT(seen, 2);
	}
	journals_close(&js);
}

TEST(that_all_of_it_is_gone_is_kept)
{
	struct journal_head h = { .sandbox = SANDBOX };
	struct journal *j;
	struct err e;

	open_all(100);
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), "whole"));
	h.ask.flags = EXEC_WHOLE;
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	CHECK(journal_is_doubt(j));
	journal_gone(j);
	CHECK(!journal_is_doubt(j));
	journal_unref(j);
	j = find("whole"); /* read from its file */
	CHECK(!journal_is_doubt(j));
	journal_remove(j);
	journal_unref(j);
	journals_close(&js);
}

static int seen_journals;

static void count_journal(void *data, struct journal *j)
{
	CHECK(data == &seen_journals);
	CHECK_INT(j->refs, 2); /* held while it is looked at */
	seen_journals++;
}

TEST(those_of_a_sandbox_that_are_held_are_visited)
{
	struct journal *a, *b;

	open_all(100);
	a = make("one");
	b = make("two");
	journals_running(&js, SANDBOX, count_journal, &seen_journals);
	CHECK_INT(seen_journals, 2);
	CHECK(a->refs == 1 && b->refs == 1);
	journals_running(&js, "sb_c1_0123456789abcdefghik", count_journal, &seen_journals);
	CHECK_INT(seen_journals, 2);
	journal_remove(a);
	journals_running(&js, SANDBOX, count_journal, &seen_journals);
	CHECK_INT(seen_journals, 3);
	journal_remove(b);
	journal_unref(a);
	journal_unref(b);
	journals_close(&js);
}

static int names_in(const char *under)
{
	char path[256];
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, under);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2; /* itself and its parent */
}

TEST(what_is_removed_is_gone_at_once_and_its_name_is_free)
{
	struct journal *first, *second, *none;
	char left[256];
	struct err e;

	open_all(1 << 20);
	first = make("one");
	journal_remove(first);
	CHECK_INT(names_in("journal"), 0);
	CHECK_ERR(journal_find(&js, SANDBOX, "one", &none, &e), &e, ERR_NOT_FOUND);
	second = make("one");
	journal_remove(first); /* it is not its name any more */
	CHECK(find("one") == second);
	CHECK_INT(names_in("journal/" SANDBOX), 1);
	journal_remove(second);
	journal_unref(first);
	journal_unref(second);
	journal_unref(second); /* as it was found */
	journals_close(&js);

	/* A berthd that dies between the two steps. */
	snprintf(left, sizeof(left), "%s/journal/.removed-3", dir);
	close(open(left, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	open_all(1 << 20);
	CHECK_INT(names_in("journal"), 0);
}

#define RACE_MS 2000 /* however many rounds that are */

struct race {
	struct journal *j;
	pthread_barrier_t start;
	bool over;
};

static void *settle_it(void *data)
{
	struct race *r = data;

	while (pthread_barrier_wait(&r->start), !r->over) {
		journal_settle(r->j);
		pthread_barrier_wait(&r->start);
	}
	return NULL;
}

static bool is_gone_on_disk(const struct journal *j)
{
	uint8_t text[JOURNAL_SLOT];
	struct journal_slot slot;
	struct err e;

	CHECK_INT(pread(j->fd, text, sizeof(text), JOURNAL_PRELUDE), sizeof(text));
	CHECK_OK(journal_slot_decode((struct bytes){ text, sizeof(text) }, &slot, &e), &e);
	return slot.gone;
}

TEST(an_end_that_was_seen_is_not_taken_back_by_a_stale_write)
{
	static struct race r;
	const struct exec_exit ended = { .kind = EXEC_EXITED };
	struct exec_usage use = { 0 };
	pthread_t thread;
	struct err e;
	int lost = 0;

	open_all(1 << 20);
	CHECK_INT(pthread_barrier_init(&r.start, NULL, 2), 0);
	r.j = make("raced");
	CHECK_OK(journal_end(r.j, &ended, &use, false, &e), &e);
	CHECK_INT(pthread_create(&thread, NULL, settle_it, &r), 0);
	for (uint64_t end = time_mono_ms() + RACE_MS; time_mono_ms() < end;) {
		r.j->slot.gone = false;
		pthread_barrier_wait(&r.start);
		journal_gone(r.j);
		pthread_barrier_wait(&r.start);
		lost += !is_gone_on_disk(r.j);
	}
	r.over = true;
	pthread_barrier_wait(&r.start);
	pthread_join(thread, NULL);
	CHECK_INT(lost, 0);
}

#define OTHERS "sb_c1_9123456789abcdefghij"

/* A command that said so many blocks, and ended at that second. */
static void add_ended(const char *owner, const char *sandbox, const char *id, int blocks, time_t at)
{
	struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };
	struct exec_exit end = { .kind = EXEC_EXITED };
	struct journal *j = make_of(owner, sandbox, id);
	static char block[4096];
	struct err e;

	for (int i = 0; i < blocks; i++)
		CHECK(journal_append(j, 0, block, sizeof(block), false));
	CHECK_OK(journal_end(j, &end, &(struct exec_usage){ 0 }, true, &e), &e);
	journal_settle(j);
	CHECK(futimens(j->fd, times) == 0);
	journal_unref(j);
}

/* What cannot be removed is its owner's: another one has its share of the limit all the same. */
TEST(what_runs_costs_no_other_owner_its_share)
{
	static char block[4096];
	struct journal *runs, *ended;
	struct err e;

	open_all(1 << 30);
	runs = make("runs");
	for (int i = 0; i < 200; i++)
		CHECK(journal_append(runs, 0, block, sizeof(block), false));
	add_ended("me", SANDBOX, "mine", 10, 5000);
	add_ended("small", OTHERS, "small", 50, 1000);
	add_ended("small", OTHERS, "newer", 30, 2000);
	/* 800 KB run, and cannot go; of 700 KB the share of each is 350 KB. */
	CHECK_INT(journals_trim(&js, 700UL * 1024), 1);
	CHECK_ERR(journal_find(&js, SANDBOX, "mine", &ended, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(journal_find(&js, OTHERS, "small", &ended, &e), &e);
	journal_unref(ended);
	CHECK_INT(journals_trim(&js, 700UL * 1024), 0);
	/* Past its own share it makes room as well, and no further. */
	CHECK_INT(journals_trim(&js, 500UL * 1024), 1);
	CHECK_ERR(journal_find(&js, OTHERS, "small", &ended, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(journal_find(&js, OTHERS, "newer", &ended, &e), &e);
	journal_unref(ended);
	journal_unref(runs);
}

TEST(whose_output_is_most_makes_room_and_others_keep_theirs)
{
	struct journal *none;
	struct err e;

	open_all(1 << 30);
	add_ended("small", OTHERS, "oldest", 4, 1000);
	add_ended("large", SANDBOX, "one", 100, 2000);
	add_ended("large", SANDBOX, "two", 100, 3000);
	CHECK_INT(journals_trim(&js, 600UL * 1024), 1);
	CHECK_ERR(journal_find(&js, SANDBOX, "one", &none, &e), &e, ERR_NOT_FOUND);
	journal_unref(find("two"));
	CHECK_INT(journals_trim(&js, 100UL * 1024), 1);
	CHECK_OK(journal_find(&js, OTHERS, "oldest", &none, &e), &e);
	journal_unref(none);
	CHECK_INT(journals_trim(&js, 0), 1);
}

/* Nothing can be removed: what runs of an owner past its share grows no further, others' does. */
TEST(what_runs_past_its_owners_share_records_no_more)
{
	static char block[4096];
	struct journal *large, *small, *other;
	struct journal_view v;

	open_all(1 << 30);
	large = make_of("large", SANDBOX, "large");
	small = make_of("large", SANDBOX, "small");
	other = make_of("other", OTHERS, "other");
	for (int i = 0; i < 1000; i++)
		CHECK(journal_append(large, 0, block, sizeof(block), false));
	for (int i = 0; i < 300; i++)
		CHECK(journal_append(other, 0, block, sizeof(block), false));
	CHECK(atomic_load(&js.grown) > 1300UL * 4096);
	CHECK_INT(journals_trim(&js, 8UL << 20), 0); /* all of it fits */
	CHECK_INT(atomic_load(&js.grown), 0);
	CHECK(!journal_is_full(large));
	CHECK_INT(journals_trim(&js, 4UL << 20), 0);
	CHECK(journal_is_full(large) && !journal_is_full(other));
	CHECK(journal_append(large, 0, block, sizeof(block), true)); /* its own client is behind */
	CHECK(!journal_append(large, 0, block, sizeof(block), false));
	CHECK(journal_append(other, 0, block, sizeof(block), false));
	CHECK(journal_append(small, 0, block, sizeof(block), false)); /* it holds next to nothing */
	journal_look(large, &v);
	CHECK_INT(v.slot.offset[0], 1002UL * sizeof(block)); /* counted */
	CHECK_INT(v.slot.recorded, 1001UL * sizeof(block));
	CHECK_INT(journals_trim(&js, 1UL << 20), 0);
	CHECK(journal_is_full(other)); /* it said nothing since: */
	CHECK_INT(journals_trim(&js, 8UL << 20), 0);
	CHECK(!journal_is_full(other)); /* there is room again, and nothing of it is missing */
	CHECK(journal_append(other, 0, block, sizeof(block), false));
	CHECK(journal_is_full(large)); /* that has a gap, and no second part behind it */
	journal_unref(large);
	journal_unref(small);
	journal_unref(other);
}

TEST(it_is_time_after_a_minute_or_when_a_part_of_the_limit_is_new)
{
	CHECK(!journals_trim_due(59999, 1 << 20, 16 << 20));
	CHECK(journals_trim_due(60000, 0, 16 << 20));
	CHECK(journals_trim_due(1000, (1 << 20) + 1, 16 << 20));
	CHECK(!journals_trim_due(1000, 0, 0));
}

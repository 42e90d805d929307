#include "node/kernel-log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/time.h"
#include "test.h"

#define SECOND 1000000ULL

/* -1: not a record at all. */
static int killed(const char *text)
{
	struct kernel_record r = { 0 };

	if (!kernel_record_parse((struct bytes){ (const uint8_t *)text, strlen(text) }, &r))
		return -1;
	return r.killed;
}

TEST(the_process_that_the_kernel_killed_for_memory_is_read)
{
	struct kernel_record r;
	static const char text[] = "3,78682,12430200681,-;Memory cgroup out of memory: Killed "
				   "process 1826 (python3) total-vm:118968kB\n";

	CHECK(kernel_record_parse((struct bytes){ (const uint8_t *)text, sizeof(text) - 1 }, &r));
	CHECK_INT(r.killed, 1826);
	CHECK(r.at_us == 12430200681);
	CHECK_INT(killed("3,1,2,-;Out of memory: Killed process 7 (a) total-vm:1kB\n"), 7);
	CHECK_INT(killed("3,1,2,c,caller=T9;Out of memory: Killed process 7 (a) x\n"), 7);
	CHECK_INT(killed("6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=a,pid=5,uid=0\n"), 0);
}

/* A program's name is its user's to choose, and any user of the host may write to the log. */
TEST(no_word_of_a_guest_names_a_process)
{
	CHECK_INT(killed("12,1,2,-;Out of memory: Killed process 7 (a) total-vm:1kB\n"), 0);
	CHECK_INT(killed("11,1,2,-;Out of memory: Killed process 7 (a) total-vm:1kB\n"), 0);
	CHECK_INT(killed("3,1,2,-;Out of memory: Killed process 7 (process 9 () x\n"), 7);
	CHECK_INT(killed("6,1,2,-;Killed process 9[5]: segfault at 0\n"), 0);
	CHECK_INT(killed("3,1,2,-;x Out of memory: Killed process 7 (a) x\n"), 0);
	CHECK_INT(killed("3,1,2,-;a\nOut of memory: Killed process 7 (a) x\n"), 0);
}

static bool has_task(const char *text, bool list)
{
	struct kernel_record r = { 0 };

	CHECK(kernel_record_parse((struct bytes){ (const uint8_t *)text, strlen(text) }, &r));
	return list ? r.list : r.task.pid > 0;
}

/* "NAME[PID]: segfault ..." is the kernel's, and begins with 15 letters of a guest's choice. */
TEST(no_name_of_a_guest_is_a_list_or_a_line_of_one)
{
	CHECK(has_task("6,1,2,-;Tasks state (memory values in pages):\n", true));
	CHECK(!has_task("6,1,2,-;Tasks state [16528]: segfault at 0\n", true));
	CHECK(!has_task("6,1,2,-;Tasks state (me[16528]: segfault at 0\n", true));
	CHECK(has_task("6,1,2,-;[      7] 1000     7  9999999999  3 4 5    -997 a\n", false));
	CHECK(has_task("6,1,2,-;[  7]  0   7   9   3   1   1  1 65536    0   0 a\n", false));
	CHECK(!has_task("6,1,2,-;[7] 1 7 9 x[16530]: segfault at 0\n", false));
	CHECK(!has_task("6,1,2,-;[7]1 2 3 4 5 6 [16530]: segfault at 0\n", false));
	CHECK(!has_task("6,1,2,-;[7]1 2 3 4 5 67[16530]: segfault at 0\n", false));
}

TEST(what_is_cut_or_too_large_is_no_process)
{
	static const char text[] = "3,1,2,-;Out of memory: Killed process 7 (";

	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		struct kernel_record r = { 0 };

		(void)!kernel_record_parse((struct bytes){ (const uint8_t *)text, len }, &r);
		CHECK_INT(r.killed, 0);
	}
	CHECK_INT(killed("3,1,2,-;Out of memory: Killed process 4294967297 (a) x\n"), 0);
	CHECK_INT(killed("3,1,2,-;Out of memory: Killed process -7 (a) x\n"), 0);
	CHECK_INT(killed("3,1,2,-;Out of memory: Killed process  (a) x\n"), 0);
	CHECK_INT(killed("3,99999999999999999999999,2,-;x\n"), -1);
	CHECK_INT(killed(",1,2,-;x\n"), -1);
	CHECK_INT(killed("3,1,2,- x\n"), -1);
}

/* ---- which process it was ---- */

static void add(struct kernel_log *l, uint64_t at_us, const char *text)
{
	char record[256];

	snprintf(record, sizeof(record), "3,1,%llu,-;%s\n", (unsigned long long)at_us, text);
	kernel_log_take(l, (struct bytes){ (const uint8_t *)record, strlen(record) });
}

static void add_kill(struct kernel_log *l, uint64_t at_us, pid_t pid)
{
	char text[128];

	snprintf(text, sizeof(text), "Memory cgroup out of memory: Killed process %d (a) x", pid);
	add(l, at_us, text);
}

static void add_line(struct kernel_log *l, uint64_t at_us, const struct kernel_task *t)
{
	char text[128];

	snprintf(text, sizeof(text), "[%7d] 2245184 %5d %8d %6d  36864   0   0 a] 1 1 1 x", t->pid,
		 t->process, (int)t->size[0], (int)t->size[1]);
	add(l, at_us, text);
}

static void add_task(struct kernel_log *l, uint64_t at_us, pid_t pid, pid_t process, uint64_t pages)
{
	struct kernel_task t = { pid, process, { pages, 72 } };

	add_line(l, at_us, &t);
}

static void add_group(struct kernel_log *l, uint64_t at_us, const char *path, pid_t pid)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=box.1,"
		 "mems_allowed=0,oom_memcg=%s,task_memcg=%s,task=a,pid=9,task=,pid=%d,uid=0",
		 path, path, pid);
	add(l, at_us, text);
}

/* A process that has ended and was not waited for. */
static pid_t ended_child(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	CHECK(pid > 0);
	CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static enum presence says(const struct kernel_log *l, pid_t pid, uint64_t kills)
{
	struct kernel_suspect one = { "box.1", kills, getpid(), (uint32_t)pid, 0 };

	return kernel_log_killed(l, &one);
}

/* A log that goes back an hour, of a machine that runs for longer. */
static struct kernel_log whole_log(uint64_t now_us)
{
	struct kernel_log l;

	kernel_log_init(&l);
	add(&l, now_us > 3600 * SECOND ? now_us - 3600 * SECOND : 0, "x");
	return l;
}

TEST(a_process_that_began_after_its_number_was_killed_is_another)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log was = whole_log(now_us), is = whole_log(now_us), old = whole_log(now_us);
	pid_t child, other;

	if (now_us < 120 * SECOND)
		return; /* the machine has just begun: there is no such past */
	child = ended_child();
	other = child + 1;
	add_task(&is, now_us, child, child, 500);
	add_task(&is, now_us, other, other, 100);
	add_group(&is, now_us, "/b/box.1", child);
	add_kill(&is, now_us, child);
	CHECK_INT(says(&is, child, 9), PRESENCE_PRESENT);
	CHECK_INT(says(&is, other, 9), PRESENCE_ABSENT);
	/* By the log's own clock: the number was killed, and 20 seconds later this is said. */
	add_task(&was, now_us - 20 * SECOND, child, child, 500);
	add_group(&was, now_us - 20 * SECOND, "/b/box.1", child);
	add_kill(&was, now_us - 20 * SECOND, child);
	add(&was, now_us, "x");
	CHECK_INT(says(&was, child, 9), PRESENCE_ABSENT);
	add_kill(&old, now_us - 60 * SECOND, child);
	add(&old, now_us, "x");
	CHECK_INT(says(&old, child, 9), PRESENCE_ABSENT);
	CHECK_INT(waitpid(child, NULL, 0), child);
}

/* Its records need not come in the order of their times. */
TEST(a_log_that_goes_back_to_no_time_at_all_leaves_it_open)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log l;

	kernel_log_init(&l);
	add(&l, now_us, "x");
	add(&l, now_us - 1, "x");
	CHECK_INT(says(&l, getpid(), 9), PRESENCE_UNKNOWN);
}

TEST(the_age_of_a_kill_is_never_more_than_it_is)
{
	struct kernel_log l = { .last = 100 * SECOND };

	CHECK(kernel_log_age(&l, 90 * SECOND, 100 * SECOND) == 10 * SECOND);
	CHECK(kernel_log_age(&l, 100 * SECOND, 100 * SECOND) == 0);
	/* The monotonic clock may be ahead of the log's, or behind. */
	CHECK(kernel_log_age(&l, 100 * SECOND, 101 * SECOND) == 0);
	CHECK(kernel_log_age(&l, 100 * SECOND, 99 * SECOND) == 0);
	CHECK(kernel_log_age(&l, 101 * SECOND, 100 * SECOND) == 0);
	/* A log that says nothing more: only that clock tells. */
	CHECK(kernel_log_age(&l, 100 * SECOND, 200 * SECOND) > 98 * SECOND);
	CHECK(kernel_log_age(&l, 100 * SECOND, 200 * SECOND) < 100 * SECOND);
}

/* A kill that names 7: was it the end of another process, too? */
static enum presence of_kills(const struct kernel_task *tasks, size_t count, const char *group,
			      uint64_t kills)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log l = whole_log(now_us);

	for (size_t i = 0; i < count; i++)
		add_line(&l, now_us, &tasks[i]);
	if (group)
		add_group(&l, now_us, group, 7);
	add_kill(&l, now_us, 7);
	if (kills < 9)
		add_kill(&l, now_us, 9); /* without a list: it may be of any sandbox */
	return says(&l, INT32_MAX, kills);
}

static enum presence of_another(const struct kernel_task *tasks, size_t count, const char *group)
{
	return of_kills(tasks, count, group, 9);
}

TEST(a_process_is_not_the_killed_one_only_if_that_was_ended_alone)
{
	static const struct kernel_task alone[] = { { 6, 6, { 100 } },
						    { 7, 7, { 500 } },
						    { 8, 8, { 100 } } };
	static const struct kernel_task thread[] = { { 6, 6, { 100 } }, { 7, 5, { 500 } } };
	static const struct kernel_task shared[] = { { 6, 6, { 500 } }, { 7, 7, { 500 } } };

	if (time_mono_us() < 120 * SECOND)
		return;
	CHECK_INT(of_another(alone, 3, "/b/box.1"), PRESENCE_ABSENT);
	CHECK_INT(of_another(alone, 3, NULL), PRESENCE_UNKNOWN); /* a list without a kill */
	CHECK_INT(of_another(thread, 2, "/b/box.1"), PRESENCE_UNKNOWN);
	CHECK_INT(of_another(shared, 2, "/b/box.1/inner"), PRESENCE_UNKNOWN);
	CHECK_INT(of_another(shared, 2, NULL), PRESENCE_UNKNOWN);
	CHECK_INT(of_another(NULL, 0, NULL), PRESENCE_UNKNOWN);
	/* What happened in another sandbox says nothing about this one. */
	CHECK_INT(of_another(shared, 2, "/b/box.10"), PRESENCE_ABSENT);
	CHECK_INT(of_another(shared, 2, "/b/abox.1"), PRESENCE_ABSENT);
	/* Nor does what may have been there, if all that was counted here is known. */
	CHECK_INT(of_kills(alone, 3, "/b/box.1", 1), PRESENCE_ABSENT);
	CHECK_INT(of_kills(alone, 3, "/b/box.1", 2), PRESENCE_UNKNOWN);
	CHECK_INT(of_kills(thread, 2, "/b/box.1", 1), PRESENCE_UNKNOWN);
	CHECK_INT(of_kills(alone, 3, "/b/box.2", 1), PRESENCE_UNKNOWN);
}

/* A fork maps what its parent does; what it uses of that is its own. */
TEST(a_process_that_maps_as_much_and_uses_less_shares_no_memory)
{
	static const struct kernel_task fork[] = { { 6, 6, { 51200, 400 } },
						   { 7, 7, { 51200, 32000 } } };
	static const struct kernel_task shared[] = { { 6, 6, { 51200, 31990 } },
						     { 7, 7, { 51200, 32000 } } };

	if (time_mono_us() < 120 * SECOND)
		return;
	CHECK_INT(of_another(fork, 2, "/b/box.1"), PRESENCE_ABSENT);
	CHECK_INT(of_another(shared, 2, "/b/box.1"), PRESENCE_UNKNOWN);
}

TEST(a_kill_that_was_read_before_a_process_began_says_nothing_of_it)
{
	struct kernel_suspect one = { "box.1", 9, getpid(), INT32_MAX, time_boot_ms() };
	uint64_t now_us = time_mono_us();
	struct kernel_log l = whole_log(now_us);

	if (now_us < 120 * SECOND)
		return;
	add_kill(&l, now_us, 7); /* without a list */
	CHECK_INT(kernel_log_killed(&l, &one), PRESENCE_UNKNOWN);
	one.boot_ms = time_boot_ms() + 1;
	CHECK_INT(kernel_log_killed(&l, &one), PRESENCE_ABSENT);
}

TEST(the_log_names_a_process_for_as_long_as_a_kill_counts)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log l = whole_log(now_us);

	if (now_us < 120 * SECOND)
		return;
	add_kill(&l, now_us - 40 * SECOND, 6);
	add_kill(&l, now_us, 7);
	CHECK(kernel_log_names(&l, 7));
	CHECK(!kernel_log_names(&l, 6));
	CHECK(!kernel_log_names(&l, 8));
}

TEST(a_list_that_is_too_long_says_nothing)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log *l;

	if (now_us < 120 * SECOND)
		return;
	l = calloc(1, sizeof(*l));
	CHECK(l);
	*l = whole_log(now_us);
	for (int i = 1; i <= KERNEL_LOG_TASKS + 2; i++)
		add_task(l, now_us, i, i, (uint64_t)i);
	add_group(l, now_us, "/b/box.1", 7);
	add_kill(l, now_us, 7);
	CHECK_INT(says(l, INT32_MAX, 9), PRESENCE_UNKNOWN);
	free(l);
}

/* One kill, known to have ended 7 alone: by it, any other process was not killed. */
static struct kernel_log *known_log(uint64_t now_us)
{
	struct kernel_log *l = calloc(1, sizeof(*l));

	CHECK(l);
	*l = whole_log(now_us);
	add_task(l, now_us, 7, 7, 500);
	add_group(l, now_us, "/b/box.1", 7);
	add_kill(l, now_us, 7);
	CHECK_INT(says(l, INT32_MAX, 9), PRESENCE_ABSENT);
	return l;
}

TEST(what_was_not_read_may_have_named_it)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log *l;
	static const char cut[] = "3,1,";

	if (now_us < 120 * SECOND)
		return;
	l = known_log(now_us);
	kernel_log_gap(l);
	CHECK_INT(says(l, INT32_MAX, 9), PRESENCE_UNKNOWN);
	free(l);
	l = known_log(now_us);
	kernel_log_take(l, (struct bytes){ (const uint8_t *)cut, sizeof(cut) - 1 });
	CHECK_INT(says(l, INT32_MAX, 9), PRESENCE_UNKNOWN);
	free(l);
}

/* A record that is longer than what is read with is an error, and the kernel goes on behind it. */
TEST(an_error_is_a_gap)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log *l;
	struct stat st;

	CHECK_INT(stat("/proc/self/ns/pid", &st), 0);
	if (now_us < 120 * SECOND || st.st_ino != 4026531836UL)
		return; /* it is not read at all */
	l = known_log(now_us);
	l->fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* EISDIR */
	CHECK_INT(kernel_log_read(l), -1);
	CHECK_INT(says(l, INT32_MAX, 9), PRESENCE_UNKNOWN);
	kernel_log_close(l);
	free(l);
}

TEST(kills_that_are_no_longer_remembered_leave_it_open)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log *l;

	if (now_us < 120 * SECOND)
		return;
	for (int more = 0; more < 2; more++) {
		l = calloc(1, sizeof(*l));
		CHECK(l);
		*l = whole_log(now_us);
		for (int i = 0; i < KERNEL_LOG_KILLS + more; i++) {
			add_task(l, now_us, 7, 7, 500);
			add_group(l, now_us, "/b/box.1", 7);
			add_kill(l, now_us, 7);
		}
		CHECK_INT(says(l, INT32_MAX, 999), more ? PRESENCE_UNKNOWN : PRESENCE_ABSENT);
		free(l);
	}
}

/* "OOM victim 7 (a) is already exiting. Skip killing the task": its list has no kill. */
TEST(a_list_serves_no_kill_but_its_own)
{
	uint64_t now_us = time_mono_us();
	struct kernel_log l = whole_log(now_us);

	if (now_us < 120 * SECOND)
		return;
	add_task(&l, now_us, 7, 7, 500);
	add_task(&l, now_us, 8, 8, 100);
	add_group(&l, now_us, "/b/box.1", 7);
	add(&l, now_us, "OOM victim 7 (a) is already exiting. Skip killing the task");
	add_kill(&l, now_us, 8);
	CHECK_INT(says(&l, INT32_MAX, 9), PRESENCE_UNKNOWN);
}

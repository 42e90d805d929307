#include "node/kernel-log.h"

#include <string.h>

#include "test.h"

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

/* What the kernel and an engine say of a guest's processes, and what a guest makes of it. */
#include "node/process-list.h"

#include "core/process-tree.h"
#include "test.h"

TEST(a_status_is_read_as_the_guest_counts)
{
	static const char text[] = "Name:\tsleep\nUmask:\t0022\nState:\tT (stopped)\nTgid:\t7932\n"
				   "Pid:\t7932\nPPid:\t7900\nNSpid:\t7932\t3\t5\n"
				   "VmRSS:\t     900 kB\nThreads:\t1\n";
	struct node_process p;
	uint32_t parent;

	CHECK(process_status_read(text, &p, &parent));
	CHECK_INT(p.pid, 5);
	CHECK_INT(parent, 7900);
	CHECK_INT(p.parent, 0);
	CHECK_INT(p.state, 'T');
	CHECK_INT(p.memory_bytes, 900 * 1024);
	CHECK_STR(p.command, "[sleep]");
	/* the kernel escapes a name: it cannot begin a line of its own */
	CHECK(process_status_read("Name:\ta\\nPPid:\t9\nPPid:\t7\nNSpid:\t4\n", &p, &parent));
	CHECK_INT(parent, 7);
	CHECK_INT(p.pid, 4);
	CHECK_INT(p.state, 0);
	CHECK_INT(p.memory_bytes, 0);
	CHECK(!process_status_read("", &p, &parent));
	CHECK(!process_status_read("Name:\tx\nPPid:\t7\n", &p, &parent));
	CHECK(!process_status_read("Name:\tx\nNSpid:\t7\n", &p, &parent));
	CHECK(!process_status_read("Name:\tx\nPPid:\tx\nNSpid:\t7\n", &p, &parent));
}

TEST(a_row_of_the_engines_table_is_read_and_its_head_is_not)
{
	struct node_process p = { 0 };

	CHECK(process_row_read("0         6         5         1         ?         04:46     0s    "
			       "    sleep well",
			       &p));
	CHECK_INT(p.pid, 6);
	CHECK_INT(p.parent, 5);
	CHECK_INT(p.state, 0);
	CHECK_STR(p.command, "[sleep well]");
	CHECK(!process_row_read("UID       PID       PPID      C         TTY       STIME     TIME "
				"     CMD",
				&p));
	CHECK(!process_row_read("", &p));
	CHECK(!process_row_read("0 6 5 1 ? 04:46 0s", &p));
	CHECK(!process_row_read("0 0 5 1 ? 04:46 0s x", &p));
	CHECK(!process_row_read("0 99999999999 5 1 ? 04:46 0s x", &p));
	CHECK_INT(p.pid, 6);
}

TEST(words_are_one_line_of_a_bounded_length)
{
	char out[NODE_COMMAND_SIZE] = "[name]", many[2 * NODE_COMMAND_SIZE];

	process_words("", 0, out);
	process_words("\0\0", 2, out);
	CHECK_STR(out, "[name]"); /* it has none */
	process_words("sh\0-c\0a b\0", 10, out);
	CHECK_STR(out, "sh -c a b");
	memset(many, 'x', sizeof(many));
	process_words(many, sizeof(many), out);
	CHECK_INT(strlen(out), NODE_COMMAND_SIZE - 1);
}

TEST(a_tree_is_what_descends_from_its_root)
{
	/* 5 -> 6 -> 9, told in any order; 7 and 8 are each other's parent */
	struct process_link links[] = {
		{ .pid = 9, .parent = 6 },
		{ .pid = 1, .parent = 0 },
		{ .pid = 6, .parent = 5 },
		{ .pid = 5, .parent = 1 },
		{ .pid = 7, .parent = 8 },
		{ .pid = 8, .parent = 7 },
		{ .pid = 4, .parent = 1 },
	};
	static const bool of_5[] = { true, false, true, true, false, false, false };

	process_tree_mark(links, array_len(links), 5);
	for (size_t i = 0; i < array_len(links); i++)
		CHECK_INT(links[i].inside, of_5[i]);
	process_tree_mark(links, array_len(links), 7);
	CHECK(links[4].inside && links[5].inside && !links[0].inside);
	process_tree_mark(links, array_len(links), 0); /* it is not known: none is its */
	for (size_t i = 0; i < array_len(links); i++)
		CHECK(!links[i].inside);
}

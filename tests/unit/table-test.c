#include "cli/table.h"

#include "cli/exit-code.h"
#include "cli/plain.h"
#include "test.h"

TEST(columns_are_aligned)
{
	cleanup(table_done) struct table t =
		table_make((const char *[]){ "ID", "STATE", "NOTE", NULL });
	cleanup(buf_done) struct buf out = buf_make(4096);

	table_add(&t, "sb_c1_long");
	table_add(&t, "ready");
	table_add(&t, "");
	table_add(&t, "\xc3\xa4"); /* two bytes, one column */
	table_addf(&t, "%d", 7);
	table_add(&t, "x\033[2Jy\nz"); /* must not reach the terminal */
	table_print(&t, &out);
	CHECK_STR(buf_str(&out), "ID          STATE  NOTE\n"
				 "sb_c1_long  ready\n"
				 "\xc3\xa4           7      x?[2Jy?z\n");
}

TEST(what_drives_a_terminal_is_shown_and_not_sent)
{
	static const struct {
		const char *text, *plain, *lines;
	} rows[] = {
		{ "a\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80", NULL, NULL },
		{ "\033[2J", "\\u001b[2J", "\\u001b[2J" },
		{ "x\xc2\x9b"
		  "31m",
		  "x\\u009b31m", "x\\u009b31m" },
		{ "\x7f\r\xc2\x85", "\\u007f\\u000d\\u0085", "\\u007f\\u000d\\u0085" },
		{ "\xe2\x80\xae\xe2\x81\xa6", "\\u202e\\u2066", "\\u202e\\u2066" },
		{ "\x9b"
		  "1\xc3",
		  "\\u009b1\\u00c3", "\\u009b1\\u00c3" },
		{ "a\n\tb", "a\\u000a\\u0009b", "a\n\tb" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		cleanup(buf_done) struct buf one = buf_make(4096), lines = buf_make(4096);
		const char *text = rows[i].text;

		plain_add(&one, text);
		plain_add_lines(&lines, text, strlen(text));
		CHECK_STR(buf_str(&one), rows[i].plain ? rows[i].plain : text);
		CHECK_STR(buf_str(&lines), rows[i].lines ? rows[i].lines : text);
	}
}

TEST(a_cell_has_no_control_of_any_set)
{
	cleanup(table_done) struct table t = table_make((const char *[]){ "A", "B", NULL });
	cleanup(buf_done) struct buf out = buf_make(4096);

	table_add(&t, "x\xc2\x9b\xe2\x80\xae\x9by");
	table_add(&t, "z");
	table_print(&t, &out);
	CHECK_STR(buf_str(&out), "A      B\n"
				 "x???y  z\n");
}

TEST(a_word_has_its_colour_in_its_column_alone_and_also_when_it_is_cut)
{
	static const struct word_colour colours[] = { { "ready", COLOUR_GREEN },
						      { "failed", COLOUR_RED },
						      { NULL } };
	cleanup(table_done) struct table t =
		table_make((const char *[]){ "NAME", "STATE", "NOTE", NULL });
	cleanup(buf_done) struct buf out = buf_make(4096);

	t.coloured = "STATE";
	t.colours = colours;
	for (int i = 0; i < 2; i++) {
		table_add(&t, i ? "STATE" : "failed");
		table_add(&t, i ? "other" : "ready");
		table_add(&t, i ? "" : "ready");
	}
	table_print(&t, &out);
	CHECK_STR(buf_str(&out), "NAME    STATE  NOTE\n"
				 "failed  \033[32mready\033[0m  ready\n"
				 "STATE   other\n");
	buf_clear(&out);
	t.fit = 18; /* colours take no room */
	table_print(&t, &out);
	CHECK_STR(buf_str(&out), "NAME    ST..  NOTE\n"
				 "failed  \033[32mre..\033[0m  re..\n"
				 "STATE   ot..\n");
}

TEST(rows_stand_in_the_order_of_their_keys)
{
	static const char *const rows[][2] = {
		{ "late", "2026-11-16T10:00:00.001Z" },
		{ "early", "2026-11-15T23:59:59.999Z" },
		{ "same-1", "2026-11-16T10:00:00.000Z" },
		{ "none", "" },
		{ "same-2", "2026-11-16T10:00:00.000Z" },
	};
	cleanup(table_done) struct table t = table_make((const char *[]){ "ID", "N", NULL });
	cleanup(strv_done) struct strv keys = { 0 };
	cleanup(buf_done) struct buf out = buf_make(4096);

	table_sort(&t, &keys); /* nothing but the titles */
	for (size_t i = 0; i < array_len(rows); i++) {
		table_add(&t, rows[i][0]);
		table_addf(&t, "%zu", i);
		strv_add(&keys, rows[i][1]);
	}
	table_sort(&t, &keys);
	table_print(&t, &out);
	CHECK_STR(buf_str(&out), "ID      N\n"
				 "none    3\n"
				 "early   1\n"
				 "same-1  2\n"
				 "same-2  4\n"
				 "late    0\n");
}

TEST(what_is_too_wide_is_cut_at_its_end_and_then_where_it_is_widest)
{
	cleanup(table_done) struct table t =
		table_make((const char *[]){ "ID", "NAME", "STATE", "NOTE", NULL });
	cleanup(buf_done) struct buf out = buf_make(4096);

	t.fit = 40;
	table_add(&t, "sb_c1_long");
	table_add(&t, "\xc3\xa4\xc3\xb6\xc3\xbc-and-some-more");
	table_add(&t, "ready");
	table_add(&t, "it was killed, and everybody should know why");
	table_print(&t, &out);
	CHECK_STR(buf_str(&out), "ID          NAME             STATE  NOTE\n"
				 "sb_c1_long  \xc3\xa4\xc3\xb6\xc3\xbc-and-some-..  ready  it..\n");
	buf_clear(&out);
	t.fit = 10; /* less than there can be: the first column stays whole */
	table_print(&t, &out);
	CHECK_STR(buf_str(&out), "ID          NAME  ST..  NOTE\n"
				 "sb_c1_long  \xc3\xa4\xc3\xb6..  re..  it..\n");
}

TEST(spans_of_time_for_people)
{
	static const struct {
		const char *from, *to, *text;
	} rows[] = {
		{ "2026-11-16T10:00:00.000Z", "2026-11-16T10:00:00.999Z", "0s" },
		{ "2026-11-16T10:00:00.000Z", "2026-11-16T10:01:59.000Z", "119s" },
		{ "2026-11-16T10:00:00.000Z", "2026-11-16T10:02:00.000Z", "2m" },
		{ "2026-11-16T10:00:00.000Z", "2026-11-16T11:59:59.000Z", "119m" },
		{ "2026-11-16T10:00:00.000Z", "2026-11-16T12:00:00.000Z", "2h" },
		{ "2026-11-16T10:00:00.000Z", "2026-11-18T09:59:59.000Z", "47h" },
		{ "2026-11-16T10:00:00.000Z", "2026-11-18T10:00:00.000Z", "2d" },
		{ "2026-11-16T10:00:00.000Z", "2028-11-16T10:00:00.000Z", "731d" },
		{ "2026-11-16T10:00:00.000Z", "2026-11-16T09:59:00.000Z", "0s" },
		{ "", "2026-11-16T09:59:00.000Z", "" },
		{ "2026-11-16T10:00:00.000Z", "soon", "" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		char text[TABLE_SIZE_TEXT];

		table_span_text(rows[i].from, rows[i].to, text);
		CHECK_STR(text, rows[i].text);
	}
}

TEST(sizes_for_people)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536ULL << 20, "1.5 GiB" },
		{ 512ULL << 20, "512 MiB" },
		{ UINT64_MAX, "15.9 EiB" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		char text[TABLE_SIZE_TEXT];

		table_size_text(rows[i].bytes, text);
		CHECK_STR(text, rows[i].text);
	}
}

TEST(every_end_has_its_exit_status)
{
	static const struct {
		struct exec_exit end;
		int code;
	} rows[] = {
		{ { .kind = EXEC_EXITED, .code = 0 }, 0 },
		{ { .kind = EXEC_EXITED, .code = 3 }, 3 },
		{ { .kind = EXEC_SIGNALLED, .signum = 15 }, 143 },
		{ { .kind = EXEC_TIMED_OUT, .signum = 9 }, 124 },
		{ { .kind = EXEC_OOM }, 137 },
		{ { .kind = EXEC_KILLED, .signum = 9 }, 137 },
		{ { .kind = EXEC_LOST }, 125 },
		{ { .kind = EXEC_NONE }, 125 },
		{ { .kind = EXEC_KIND_COUNT }, 125 },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		CHECK_INT(exit_code(&rows[i].end), rows[i].code);
		/* Never 0 unless the command said so itself. */
		CHECK(exit_code(&rows[i].end) != 0 || rows[i].end.kind == EXEC_EXITED);
	}
}

TEST(an_end_that_a_number_does_not_explain_has_a_sentence)
{
	static const struct {
		struct exec_exit end;
		const char *text; /* NULL: none */
	} rows[] = {
		{ { .kind = EXEC_EXITED, .code = 3 }, NULL },
		{ { .kind = EXEC_SIGNALLED, .signum = 11 },
		  "the command was ended by signal 11 (SEGV)" },
		{ { .kind = EXEC_SIGNALLED, .signum = 40 }, "the command was ended by signal 40" },
		{ { .kind = EXEC_TIMED_OUT, .signum = 9 },
		  "the command ran out of time and was killed" },
		{ { .kind = EXEC_LOST }, "the end of the command was not seen: its sandbox was "
					 "deleted or ended, or its watcher was" },
		{ { .kind = EXEC_KIND_COUNT }, "the server did not say how the command ended" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		char text[EXIT_REASON_SIZE];

		CHECK(exit_reason(&rows[i].end, text) == (rows[i].text != NULL));
		if (rows[i].text)
			CHECK_STR(text, rows[i].text);
	}
}

#include "cli/table.h"

#include "cli/exit-code.h"
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
	CHECK(!exit_reason(&rows[0].end));
	CHECK(exit_reason(&rows[3].end));
}

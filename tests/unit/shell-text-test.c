#include "init/shell-text.h"

#include "test.h"

static const struct strv none;

static struct shell_text text(const char *command)
{
	return (struct shell_text){ .kind = SHELL_BASH,
				    .dir = "/d",
				    .key = "KEY",
				    .command_dir = "/c",
				    .command = command,
				    .env = &none,
				    .cwd = "",
				    .back = "" };
}

TEST(a_command_is_one_quoted_word)
{
	cleanup(buf_done) struct buf out = buf_make(SHELL_TEXT_MAX);
	struct shell_text t = text("it's } \"$(x)\n'");

	shell_text_command(&out, &t);
	CHECK(strstr(buf_str(&out), "\\command eval 'it'\\''s } \"$(x)\n'\\''' </dev/null >/c/out "
				    "2>/c/err\n"));
	CHECK(strstr(buf_str(&out), "\\builtin echo KEY exit $? >/d/status\n"));
}

TEST(variables_and_directory_are_quoted_too)
{
	cleanup(buf_done) struct buf out = buf_make(SHELL_TEXT_MAX);
	cleanup(strv_done) struct strv env = { 0 };
	struct shell_text t = text("x");

	strv_add(&env, "A='; b");
	t.env = &env;
	t.cwd = "/it's";
	t.back = "/ba'ck";
	t.input = true;
	shell_text_command(&out, &t);
	CHECK(strstr(buf_str(&out), "\\builtin cd -- '/it'\\''s' >/dev/null 2>/c/err && "
				    "A=''\\''; b' \\command eval 'x' </c/in >/c/out"));
	CHECK(strstr(buf_str(&out), "\\builtin cd -- '/ba'\\''ck' >/dev/null && :\n"));
}

TEST(only_whole_lines_with_the_key_are_heard)
{
	static const struct {
		const char *said;
		enum shell_word word;
		unsigned code, left;
	} rows[] = {
		{ "KEY exit 7\n", SHELL_WORD_EXIT, 7, 0 },
		{ "KEY exit 255\nKEY kept\n", SHELL_WORD_EXIT, 255, 9 },
		{ "KEY kept\n", SHELL_WORD_KEPT, 0, 0 },
		{ "KEY unkept\n", SHELL_WORD_UNKEPT, 0, 0 },
		{ "KEY ready\n", SHELL_WORD_READY, 0, 0 },
		{ "exit 0\nKEYexit 0\n KEY exit 0\nkey exit 0\nX exit 0\n", SHELL_WORD_NONE, 0, 0 },
		{ "KEY exit 256\nKEY exit -1\nKEY exit\nKEY exit 0x\nKEY exit  0\nKEY \n",
		  SHELL_WORD_NONE, 0, 0 },
		{ "KEY exit 99999999999999999999\n", SHELL_WORD_NONE, 0, 0 },
		{ "KEY exit 3", SHELL_WORD_NONE, 0, 10 }, /* the rest may still come */
		{ "garbage\nKEY exit 4\n", SHELL_WORD_EXIT, 4, 0 },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		cleanup(buf_done) struct buf in = buf_make(4096);
		unsigned code = 0;

		buf_adds(&in, rows[i].said);
		CHECK_INT(shell_text_said(&in, "KEY", &code), rows[i].word);
		CHECK_INT(code, rows[i].code);
		CHECK_INT(in.len, rows[i].left);
	}
}

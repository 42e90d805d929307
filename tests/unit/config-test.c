#include "lib/config.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

struct sample {
	char listen[16];
	uint64_t loops, pool, wait;
	bool quiet;
	char database[64];
};

/* clang-format off */
static const struct setting settings[] = {
	SETTING(CONFIG_STR,      sample, listen,   "127.0.0.1:1", "Where it listens."),
	SETTING(CONFIG_INT,      sample, loops,    "2",           "How many loops."),
	SETTING(CONFIG_SIZE,     sample, pool,     "20g",         "How large the pool is."),
	SETTING(CONFIG_DURATION, sample, wait,     "30s",         "How long to wait."),
	SETTING(CONFIG_BOOL,     sample, quiet,    "no",          "Say less."),
	SETTING(CONFIG_STR,      sample, database, NULL,          "Where the database is."),
	SETTING_END
};
/* clang-format on */

static int parse(const char *text, struct sample *ret, struct err *e)
{
	return config_parse("x.conf", text, strlen(text), settings, ret, e);
}

TEST(defaults_and_values)
{
	struct sample s = { 0 };
	struct err e;

	CHECK_OK(parse("# hello\n\n  pool =  64m \r\ndatabase=host=/run db = b\nquiet = yes", &s,
		       &e),
		 &e);
	CHECK_STR(s.listen, "127.0.0.1:1");
	CHECK_INT(s.loops, 2);
	CHECK_INT(s.pool, 64 << 20);
	CHECK_INT(s.wait, 30000);
	CHECK(s.quiet);
	CHECK_STR(s.database, "host=/run db = b");
}

TEST(mistakes_name_the_file_and_the_line)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "loops = 1\nlisen = x\n", "x.conf:2: no setting is called \"lisen\"" },
		{ "loops = two\n", "x.conf:1: loops: not a whole number: \"two\"" },
		{ "\n\nwhat\n", "x.conf:3: not `name = value`: \"what\"" },
		{ "loops = 1\nloops = 1\n", "x.conf:2: loops is set twice" },
		{ "listen = 0123456789abcdef\n", "x.conf:1: listen: more than 15 bytes" },
		{ "quiet = perhaps\n", "x.conf:1: quiet: neither yes nor no: \"perhaps\"" },
		{ "loops = 1\n", "x.conf: database is not set" },
		{ "", "x.conf: database is not set" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		struct sample s = { 0 };
		struct err e;

		CHECK_ERR(parse(rows[i].text, &s, &e), &e, ERR_INVALID);
		CHECK_STR(e.msg, rows[i].says);
	}
}

TEST(a_nul_byte_is_refused)
{
	static const char text[] = "loops = 1\0\ndatabase = x";
	struct sample s = { 0 };
	struct err e;

	CHECK_ERR(config_parse("x.conf", text, sizeof(text) - 1, settings, &s, &e), &e,
		  ERR_INVALID);
}

TEST(a_file_that_is_not_there)
{
	struct sample s = { 0 };
	struct err e;

	CHECK_ERR(config_load("/no/such.conf", settings, &s, &e), &e, ERR_NOT_FOUND);
}

TEST(words_of_yes_and_no)
{
	static const struct {
		const char *text;
		bool means;
	} rows[] = {
		{ "quiet = yes\ndatabase = x", true },
		{ "quiet = true\ndatabase = x", true },
		{ "quiet = no\ndatabase = x", false },
		{ "quiet = false\ndatabase = x", false },
	};
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		struct sample s = { .quiet = !rows[i].means };

		CHECK_OK(parse(rows[i].text, &s, &e), &e);
		CHECK_INT(s.quiet, rows[i].means);
	}
}

TEST(blanks_and_the_longest_text)
{
	struct sample s = { 0 };
	struct err e;

	CHECK_OK(parse("\t listen\t=\t0123456789abcde \t\r\n#database = y\n  # z\n"
		       "database =\nloops=7\nwait = 2m",
		       &s, &e),
		 &e);
	CHECK_STR(s.listen, "0123456789abcde");
	CHECK_STR(s.database, "");
	CHECK_INT(s.loops, 7);
	CHECK_INT(s.wait, 120000);
}

TEST(a_file_is_read_and_named)
{
	char path[] = "/tmp/config-test-XXXXXX";
	int fd = mkstemp(path);
	struct sample s = { 0 };
	struct err e;

	CHECK(write(fd, "database = x\nloops = 5\n", 23) == 23);
	CHECK_OK(config_load(path, settings, &s, &e), &e);
	CHECK_INT(s.loops, 5);
	CHECK(write(fd, "what\n", 5) == 5);
	CHECK_ERR(config_load(path, settings, &s, &e), &e, ERR_INVALID);
	CHECK(strncmp(e.msg, path, strlen(path)) == 0 && strstr(e.msg, ":3: "));
	CHECK_INT(unlink(path) + close(fd), 0);
	CHECK_ERR(config_load(path, settings, &s, &e), &e, ERR_NOT_FOUND);
	CHECK(strncmp(e.msg, "settings: ", 10) == 0);
}

TEST(a_file_has_a_longest)
{
	static char text[CONFIG_FILE_MAX + 1];
	struct sample s = { 0 };
	struct err e;

	memset(text, '\n', sizeof(text));
	memcpy(text, "database = x", 12);
	CHECK_OK(config_parse("x.conf", text, sizeof(text) - 1, settings, &s, &e), &e);
	CHECK_ERR(config_parse("x.conf", text, sizeof(text), settings, &s, &e), &e, ERR_TOO_LARGE);
}

TEST(a_table_that_is_wrong_says_so)
{
	static const struct setting narrow[] = {
		{ "loops", CONFIG_INT, 0, 4, "1", "" },
		SETTING_END,
	};
	static const struct setting unreadable[] = {
		SETTING(CONFIG_INT, sample, loops, "two", ""),
		SETTING_END,
	};
	static struct setting many[CONFIG_SETTINGS_MAX + 2];
	struct sample s = { 0 };
	struct err e;

	CHECK_ERR(config_parse("x", "", 0, narrow, &s, &e), &e, ERR_INTERNAL);
	CHECK(strstr(e.msg, "setting loops has a member of 4 bytes"));
	CHECK_ERR(config_parse("x", "", 0, unreadable, &s, &e), &e, ERR_INVALID);
	CHECK(strncmp(e.msg, "default: loops: ", 16) == 0);
	for (size_t i = 0; i <= CONFIG_SETTINGS_MAX; i++)
		many[i] = settings[1];
	many[CONFIG_SETTINGS_MAX + 1] = (struct setting)SETTING_END;
	CHECK_ERR(config_parse("x", "", 0, many, &s, &e), &e, ERR_INTERNAL);
	many[CONFIG_SETTINGS_MAX] = (struct setting)SETTING_END;
	CHECK_OK(config_parse("x", "", 0, many, &s, &e), &e);
}

TEST(mistakes_say_what_to_do)
{
	struct sample s = { 0 };
	struct err e = { 0 };

	CHECK_ERR(parse("loop = 1", &s, &e), &e, ERR_INVALID);
	CHECK(strstr(e.fix, "the manual lists all settings"));
	CHECK_ERR(parse("", &s, &e), &e, ERR_INVALID);
	CHECK_STR(e.fix, "Add a line `database = ...`: Where the database is.");
}

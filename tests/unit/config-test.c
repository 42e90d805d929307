#include "lib/config.h"

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

TEST(the_sample_is_all_comments)
{
	cleanup(buf_done) struct buf out = buf_make(4096);
	struct sample s = { 0 };
	struct err e;

	config_sample(&out, settings);
	CHECK(strstr(out.data, "# How many loops. (number)\n#loops = 2\n"));
	CHECK(strstr(out.data, "# Where the database is. (text; must be set)\n#database = \n"));
	buf_adds(&out, "database = x\n");
	CHECK_OK(parse(out.data, &s, &e), &e);
}

TEST(the_manual_has_every_row)
{
	cleanup(buf_done) struct buf out = buf_make(4096);

	config_man(&out, settings);
	for (const struct setting *s = settings; s->type != CONFIG_END; s++)
		CHECK(strstr(out.data, s->help));
}

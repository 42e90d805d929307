#include "cli/options.h"

#include "test.h"

struct sample {
	bool keep;
	const char *runtime;
	uint64_t memory, cpus, pids, wait;
	struct strv env;
};

/* clang-format off */
static const struct option_row rows[] = {
	OPTION(OPTION_FLAG, sample, keep, "keep", 'k', NULL, "keep it"),
	OPTION(OPTION_TEXT, sample, runtime, "runtime", 0, "R", "which one"),
	OPTION(OPTION_SIZE, sample, memory, "memory", 'm', "SIZE", "how much"),
	OPTION(OPTION_CPUS, sample, cpus, "cpus", 'c', "N", "how many"),
	OPTION(OPTION_NUMBER, sample, pids, "pids", 0, "N", "how many"),
	OPTION(OPTION_DURATION, sample, wait, "timeout", 't', "TIME", "how long"),
	OPTION(OPTION_LIST, sample, env, "env", 'e', "K=V", "set it"),
	OPTION_ROWS_END
};
/* clang-format on */

#define PARSE(own, args, s, e, ...) \
	parse(own, args, s, e, (char *[]){ (char *)"berth", __VA_ARGS__, NULL })

static int parse(size_t own, struct strv *args, struct sample *s, struct err *e, char **argv)
{
	struct option_set set = { rows, s };
	int argc = 0;

	while (argv[argc])
		argc++;
	return options_parse(&(struct option_line){ argc, argv, own, "try" }, &set, 1, args, e);
}

#define W(s) (char *)(s)

TEST(values_of_every_type)
{
	struct sample s = { 0 };
	cleanup(strv_done) struct strv args = { 0 };
	struct err e;

	CHECK_OK(PARSE(0, &args, &s, &e, W("-k"), W("--runtime=crun"), W("--memory"), W("512m"),
		       W("-c1.5"), W("--pids"), W("7"), W("-t"), W("30s"), W("-e"), W("A=b"),
		       W("arg"), W("--env"), W("C=d"), W("more")),
		 &e);
	CHECK(s.keep);
	CHECK_STR(s.runtime, "crun");
	CHECK_INT(s.memory, 512 << 20);
	CHECK_INT(s.cpus, 1500);
	CHECK_INT(s.pids, 7);
	CHECK_INT(s.wait, 30000);
	CHECK_INT(s.env.len, 2);
	CHECK_STR(s.env.items[1], "C=d");
	CHECK_INT(args.len, 2);
	CHECK_STR(args.items[1], "more");
	options_done(&(struct option_set){ rows, &s });
	CHECK_INT(s.env.len, 0);
}

TEST(a_command_behind_our_arguments_is_left_alone)
{
	struct sample s = { 0 };
	cleanup(strv_done) struct strv args = { 0 };
	struct err e;

	CHECK_OK(PARSE(1, &args, &s, &e, W("image"), W("-k"), W("ls"), W("-l"), W("--memory"),
		       W("--"), W("x")),
		 &e);
	CHECK(s.keep);
	CHECK_INT(s.memory, 0);
	CHECK_INT(args.len, 6);
	CHECK_STR(args.items[2], "-l");
	CHECK_STR(args.items[4], "--");
}

TEST(after_two_dashes_nothing_is_an_option)
{
	struct sample s = { 0 };
	cleanup(strv_done) struct strv args = { 0 };
	struct err e;

	CHECK_OK(PARSE(1, &args, &s, &e, W("image"), W("--"), W("-k"), W("x")), &e);
	CHECK(!s.keep);
	CHECK_INT(args.len, 3);
	CHECK_STR(args.items[1], "-k");
}

TEST(cpus)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: refused */
	} cases[] = {
		{ "2", 2000 },
		{ "0.25", 250 },
		{ "1.005", 1005 },
		{ "1.", -1 },
		{ ".5", -1 },
		{ "1.2345", -1 },
		{ "1e3", -1 },
		{ "-1", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct sample s = { 0 };
		cleanup(strv_done) struct strv args = { 0 };
		struct err e;
		int rc = PARSE(0, &args, &s, &e, W("--cpus"), W(cases[i].text));

		CHECK_INT(rc, cases[i].want < 0 ? -1 : 0);
		if (rc == 0)
			CHECK_INT(s.cpus, cases[i].want);
	}
}

TEST(mistakes_are_named)
{
	struct sample s = { 0 };
	cleanup(strv_done) struct strv args = { 0 };
	struct err e;

	CHECK_ERR(PARSE(0, &args, &s, &e, W("--frob")), &e, ERR_INVALID);
	CHECK_STR(e.msg, "there is no option --frob");
	CHECK_STR(e.fix, "`berth help try` lists its options.");
	CHECK_ERR(PARSE(1, &args, &s, &e, W("--frob=3")), &e, ERR_INVALID);
	CHECK_STR(e.msg, "there is no option --frob");
	CHECK(strstr(e.fix, "Put -- before") && strstr(e.fix, "`berth help try`"));
	CHECK_ERR(PARSE(0, &args, &s, &e, W("--keep=1")), &e, ERR_INVALID);
	CHECK_STR(e.msg, "--keep takes no value");
	CHECK_ERR(PARSE(0, &args, &s, &e, W("-x")), &e, ERR_INVALID);
	CHECK_STR(e.msg, "there is no option -x");
	CHECK_ERR(PARSE(0, &args, &s, &e, W("--memory")), &e, ERR_INVALID);
	CHECK_STR(e.msg, "--memory needs a value");
	CHECK_ERR(PARSE(0, &args, &s, &e, W("--memory"), W("much")), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "--memory: not a size"));
}

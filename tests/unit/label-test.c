#include "core/label.h"

#include "test.h"

static int check_selector(const char *text, const char *equal, const char *unequal,
			  const char *keys)
{
	struct selector s;
	struct err e;

	if (selector_read(text, &s, &e) < 0)
		return -1;
	CHECK_STR(buf_str(&s.equal), equal);
	CHECK_STR(buf_str(&s.unequal), unequal);
	CHECK_STR(buf_str(&s.keys), keys);
	selector_done(&s);
	return 0;
}

TEST(a_selector_is_read_term_by_term)
{
	CHECK_INT(check_selector("", "{}", "[]", "{}"), 0);
	CHECK_INT(check_selector("a=b", "{\"a\":\"b\"}", "[]", "{}"), 0);
	CHECK_INT(check_selector("a=b,c!=d,e,f/g.h_i-j=", "{\"a\":\"b\",\"f/g.h_i-j\":\"\"}",
				 "[{\"c\":\"d\"}]", "{\"e\"}"),
		  0);
	CHECK_INT(check_selector("a!=b,a!=c", "{}", "[{\"a\":\"b\"},{\"a\":\"c\"}]", "{}"), 0);
	CHECK_INT(check_selector("a=b=\"c", "{\"a\":\"b=\\\"c\"}", "[]", "{}"), 0);
	CHECK_INT(check_selector("a,b", "{}", "[]", "{\"a\",\"b\"}"), 0);
}

TEST(what_is_no_selector_is_refused)
{
	static const char *const bad[] = {
		",",
		"a,",
		"=b",
		"!=b",
		"a b",
		"a=b,a=c",
		"a\"",
		"a{}",
		"\xc3\xa4",
		"a=\n",
		"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
	};

	for (size_t i = 0; i < array_len(bad); i++)
		if (check_selector(bad[i], "", "", "") == 0)
			test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
}

static int try_map(int (*check)(const struct strv *, struct err *), const char *item, size_t n)
{
	cleanup(strv_done) struct strv map = { 0 };
	struct err e;

	for (size_t i = 0; i < n; i++)
		strv_add(&map, item);
	return check(&map, &e);
}

TEST(labels_and_variables_have_limits)
{
	CHECK_INT(try_map(labels_check, "k=v", LABELS_MAX), 0);
	CHECK_INT(try_map(labels_check, "k=v", LABELS_MAX + 1), -1);
	CHECK_INT(try_map(labels_check, "a b=v", 1), -1);
	CHECK_INT(try_map(labels_check, "a=\x01", 1), -1);
	CHECK_INT(try_map(env_check, "K=v", ENV_MAX), 0);
	CHECK_INT(try_map(env_check, "K=v", ENV_MAX + 1), -1);
	CHECK_INT(try_map(env_check, "1K=v", 1), -1);
	CHECK_INT(try_map(env_check, "A-=v", 1), -1);
	CHECK_INT(try_map(env_check, "HOME=x", 1), -1);
	CHECK_INT(try_map(env_check, "SESSION_ID=", 1), -1);
	CHECK_INT(try_map(env_check, "HOMER=\n", 1), 0);
}

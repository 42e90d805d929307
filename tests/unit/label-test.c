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

/* One item of `name` times n, '=', and 'v' times m. */
static int try_long(int (*check)(const struct strv *, struct err *), size_t n, size_t m,
		    struct err *e)
{
	static char item[ENV_VALUE_MAX + 400];
	cleanup(strv_done) struct strv map = { 0 };

	memset(item, 'k', n);
	item[n] = '=';
	memset(item + n + 1, 'v', m);
	item[n + 1 + m] = '\0';
	strv_add(&map, item);
	*e = (struct err){ 0 };
	return check(&map, e);
}

TEST(names_and_values_have_a_longest)
{
	struct err e;

	CHECK_OK(try_long(labels_check, LABEL_KEY_MAX, LABEL_VALUE_MAX, &e), &e);
	CHECK_ERR(try_long(labels_check, LABEL_KEY_MAX + 1, 1, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "1 to 63"));
	CHECK_ERR(try_long(labels_check, 1, LABEL_VALUE_MAX + 1, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "label k: at most 255 bytes"));
	CHECK_ERR(try_long(labels_check, 0, 1, &e), &e, ERR_INVALID);
	CHECK_OK(try_long(env_check, ENV_KEY_MAX, ENV_VALUE_MAX, &e), &e);
	CHECK_ERR(try_long(env_check, ENV_KEY_MAX + 1, 1, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "cannot be a variable"));
	CHECK_ERR(try_long(env_check, 1, ENV_VALUE_MAX + 1, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "env: k is longer than 4096 bytes");
	CHECK_ERR(try_long(env_check, 0, 1, &e), &e, ERR_INVALID);
}

static const char *why_not(int (*check)(const struct strv *, struct err *), const char *item,
			   size_t n)
{
	static struct err e;
	cleanup(strv_done) struct strv map = { 0 };

	for (size_t i = 0; i < n; i++)
		strv_add(&map, item);
	CHECK_ERR(check(&map, &e), &e, ERR_INVALID);
	return e.msg;
}

TEST(what_is_wrong_with_a_label_or_a_variable_is_said)
{
	CHECK_STR(why_not(labels_check, "k=v", LABELS_MAX + 1), "a sandbox has at most 32 labels");
	CHECK(strstr(why_not(labels_check, "k=\x7f", 1), "none of control"));
	CHECK(strstr(why_not(labels_check, "k=\x1f", 1), "none of control"));
	CHECK(strstr(why_not(labels_check, "k=\xc2\x80", 1), "none of control"));
	CHECK(strstr(why_not(labels_check, "k=\xc2\x9b[2J", 1), "none of control"));
	CHECK(strstr(why_not(labels_check, "k=a\xe2\x80\xae", 1), "none of control"));
	CHECK_INT(try_map(labels_check, "k=\xc2\xa0\xe4\xb8\xad", 1), 0);
	CHECK_STR(why_not(env_check, "K=v", ENV_MAX + 1), "env has at most 50 variables");
	CHECK_STR(why_not(env_check, "HOME=v", 1), "env: HOME is set by Berth");
	CHECK_STR(why_not(env_check, "SESSION_HOME=v", 1), "env: SESSION_HOME is set by Berth");
	CHECK_STR(why_not(env_check, "0=v", 1), "env: \"0\" cannot be a variable");
	CHECK_STR(why_not(env_check, "9K=v", 1), "env: \"9K\" cannot be a variable");
	CHECK_INT(try_map(labels_check, "k= \xc3\xa4~", 1), 0);
	CHECK_INT(try_map(labels_check, "k=", 1), 0);
	CHECK_INT(try_map(env_check, "ABCD=x", 1), 0); /* as long as one that is reserved */
	CHECK_INT(try_map(env_check, "HOM=x", 1), 0);
	CHECK_INT(try_map(env_check, "_9=", 1), 0);
}

/* Of the first forty bytes of a name only. */
TEST(a_long_name_is_shown_in_part)
{
	struct err e;

	CHECK_ERR(try_long(labels_check, 100, 1, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\""));
	CHECK_ERR(try_long(env_check, 200, 1, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\""));
}

TEST(only_what_must_be_there_can_be_looked_up)
{
	static const struct {
		const char *text;
		bool indexed;
	} rows[] = {
		{ "a=b", true },
		{ "a", true },
		{ "a!=b", false },
		{ "", false },
		{ "a!=b,c", true },
	};
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		struct selector s;

		CHECK_OK(selector_read(rows[i].text, &s, &e), &e);
		CHECK_INT(s.indexed, rows[i].indexed);
		selector_done(&s);
	}
}

TEST(a_selector_has_a_most_and_a_longest)
{
	static char text[SELECTOR_MAX * (LABEL_KEY_MAX + LABEL_VALUE_MAX + 2) + 1];
	static const char *const between[] = { "=", "!=", NULL };
	struct selector s;
	struct err e;

	CHECK_OK(selector_read("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", &s, &e), &e);
	selector_done(&s);
	CHECK_ERR(selector_read("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", &s, &e), &e,
		  ERR_INVALID);
	CHECK_STR(e.msg, "selector: a selector has at most 16 terms");
	CHECK_ERR(selector_read("a=b,a=c", &s, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "selector: selector: a cannot have two values");
	/* Each term may be as long as a label; all of them together may be too much. */
	for (size_t i = 0; between[i]; i++) {
		size_t len = 0;

		for (int k = 0; k < SELECTOR_MAX; k++) {
			len += (size_t)sprintf(text + len, "%sk%02d%s", k ? "," : "", k,
					       between[i]);
			memset(text + len, '"', LABEL_VALUE_MAX);
			len += LABEL_VALUE_MAX;
			text[len] = '\0';
		}
		CHECK_ERR(selector_read(text, &s, &e), &e, ERR_INVALID);
		CHECK_STR(e.msg, "the selector is too long");
	}
}

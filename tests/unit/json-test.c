#include "lib/json.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

struct sample {
	char name[8];
	int64_t count;
	bool on;
	char *text;
	struct strv list, map;
};

static const struct json_field fields[] = {
	JSON_FIELD_STR(sample, name, .required = true),
	JSON_FIELD_INT(sample, count),
	JSON_FIELD_BOOL(sample, on),
	JSON_FIELD_TEXT(sample, text),
	JSON_FIELD_STRV(sample, list),
	JSON_FIELD_MAP(sample, map),
	JSON_FIELD_END
};

static void sample_done(struct sample *s)
{
	free(s->text);
	strv_done(&s->list);
	strv_done(&s->map);
}

TEST(a_record_is_read_by_its_table)
{
	static const char text[] = "{\"name\":\"n\",\"count\":-3,\"on\":true,\"text\":\"long\\n\","
				   "\"list\":[\"a\",\"b\"],\"map\":{\"K\":\"v=w\"}}";
	cleanup(sample_done) struct sample s = { 0 };
	struct err e;

	CHECK_OK(json_read(text, sizeof(text) - 1, fields, &s, &e), &e);
	CHECK_STR(s.name, "n");
	CHECK_INT(s.count, -3);
	CHECK(s.on);
	CHECK_STR(s.text, "long\n");
	CHECK_INT(s.list.len, 2);
	CHECK_STR(s.list.items[1], "b");
	CHECK_STR(s.map.items[0], "K=v=w");
}

struct partly {
	int64_t count;
	struct strv map;
	bool on, has_count, has_map, has_on;
};

static const struct json_field partly_fields[] = {
	JSON_FIELD_INT(partly, count, JSON_GIVEN(partly, has_count)),
	JSON_FIELD_MAP(partly, map, JSON_GIVEN(partly, has_map)),
	JSON_FIELD_BOOL(partly, on, JSON_GIVEN(partly, has_on)),
	JSON_FIELD_END
};

TEST(what_is_given_is_told_from_what_is_not)
{
	static const struct {
		const char *text;
		bool count, map, on;
	} cases[] = {
		{ "{}", false, false, false },
		{ "{\"count\":0}", true, false, false },
		{ "{\"map\":{}}", false, true, false },
		{ "{\"on\":false}", false, false, true },
		{ "{\"on\":true,\"map\":{},\"count\":1}", true, true, true },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct partly p = { 0 };
		struct err e;

		CHECK_OK(json_read(cases[i].text, strlen(cases[i].text), partly_fields, &p, &e),
			 &e);
		CHECK_INT(p.has_count, cases[i].count);
		CHECK_INT(p.has_map, cases[i].map);
		CHECK_INT(p.has_on, cases[i].on);
		strv_done(&p.map);
	}
}

TEST(what_is_no_value_is_not_given)
{
	struct partly p = { 0 };
	struct err e;

	CHECK(json_read("{\"count\":null}", 14, partly_fields, &p, &e) < 0);
	CHECK(!p.has_count);
}

TEST(what_is_wrong_is_named)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "not a JSON object" },
		{ "[]", "not a JSON object" },
		{ "{", "not JSON" },
		{ "{}", "name is missing" },
		{ "{\"name\":1}", "name must be a string" },
		{ "{\"name\":\"12345678\"}", "longer than 7 bytes" },
		{ "{\"name\":\"a\",\"nmae\":\"b\"}", "unknown member \"nmae\"" },
		{ "{\"name\":\"a\",\"name\":\"b\"}", "not JSON" },
		{ "{\"name\":\"a\\u0000b\"}", "not JSON" },
		{ "{\"name\":\"\xff\"}", "not JSON" },
		{ "{\"name\":\"a\",\"count\":1.5}", "count must be a whole number" },
		{ "{\"name\":\"a\",\"count\":9223372036854775808}", "not JSON" },
		{ "{\"name\":\"a\",\"on\":1}", "on must be true or false" },
		{ "{\"name\":\"a\",\"list\":[1]}", "list[0] must be a string" },
		{ "{\"name\":\"a\",\"map\":{\"a=b\":\"c\"}}", "cannot be a name" },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		cleanup(sample_done) struct sample s = { 0 };
		struct err e = { 0 };

		CHECK_ERR(json_read(cases[i].text, strlen(cases[i].text), fields, &s, &e), &e,
			  ERR_INVALID);
		if (!strstr(e.msg, cases[i].says))
			test_fail(__FILE__, __LINE__, "%s: %s", cases[i].text, e.msg);
	}
}

TEST(a_writer_puts_its_own_commas)
{
	cleanup(buf_done) struct buf b = buf_make(1024);

	json_open(&b, '{');
	json_str(&b, "a", "x\"\\\n\x01");
	json_int(&b, "b", -1);
	json_key(&b, "list");
	json_open(&b, '[');
	json_open(&b, '{');
	buf_adds(&b, "}");
	json_open(&b, '{');
	json_bool(&b, "c", true);
	buf_adds(&b, "}]}");
	CHECK_STR(b.data, "{\"a\":\"x\\\"\\\\\\n\\u0001\",\"b\":-1,\"list\":[{},{\"c\":true}]}");
}

TEST(a_comma_comes_even_behind_a_value_of_one_byte)
{
	cleanup(buf_done) struct buf b = buf_make(100);

	buf_adds(&b, "1");
	json_open(&b, '[');
	CHECK_STR(buf_str(&b), "1,[");
}

TEST(what_is_no_utf8_is_replaced_and_the_rest_stays)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "\xc3\xa9 \xf0\x9d\x84\x9e", "\"\xc3\xa9 \xf0\x9d\x84\x9e\"" },
		{ "a\xff\xfe", "\"a\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "cut \xc3", "\"cut \xef\xbf\xbd\"" },
		{ "\xc3\"", "\"\xef\xbf\xbd\\\"\"" },
		{ "\xed\xa0\x80x", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\"" },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		cleanup(buf_done) struct buf b = buf_make(1024);

		json_add_string(&b, cases[i].in);
		CHECK_STR(b.data, cases[i].out);
	}
}

TEST(a_tree_answers_and_only_misses)
{
	static const char text[] = "{\"items\":[{\"id\":\"x\",\"n\":5}]}";
	cleanup(json_free) struct json *tree = NULL;
	const struct json *item;
	struct err e;

	CHECK_OK(json_parse(text, sizeof(text) - 1, &tree, &e), &e);
	CHECK_INT(json_len(json_get(tree, "items")), 1);
	item = json_at(json_get(tree, "items"), 0);
	CHECK_STR(json_get_str(item, "id"), "x");
	CHECK_INT(json_get_int(item, "n"), 5);
	CHECK_STR(json_get_str(item, "no"), "");
	CHECK_INT(json_len(json_get(item, "no")), 0);
}

struct other {
	char word[4];
	char *raw;
	struct strv parts;
};

static const struct json_field other_fields[] = {
	JSON_FIELD_WORD(other, word),
	JSON_FIELD_RAW(other, raw),
	JSON_FIELD_LIST(other, parts),
	JSON_FIELD_END
};

static void other_done(struct other *o)
{
	free(o->raw);
	strv_done(&o->parts);
}

static int read_other(const char *text, struct other *o, struct err *e)
{
	return json_read(text, strlen(text), other_fields, o, e);
}

TEST(a_word_is_a_string_or_a_number)
{
	struct other o = { 0 };
	struct err e;

	CHECK_OK(read_other("{\"word\":\"abc\"}", &o, &e), &e);
	CHECK_STR(o.word, "abc");
	CHECK_OK(read_other("{\"word\":-12}", &o, &e), &e);
	CHECK_STR(o.word, "-12");
	CHECK_ERR(read_other("{\"word\":1234}", &o, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "word is too large");
	CHECK_ERR(read_other("{\"word\":\"abcd\"}", &o, &e), &e, ERR_INVALID);
	CHECK_ERR(read_other("{\"word\":1.5}", &o, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "word must be a string");
}

TEST(an_object_or_a_list_is_kept_as_text)
{
	cleanup(other_done) struct other o = { 0 };
	struct err e;

	CHECK_OK(read_other("{\"raw\": {\"a\": [1, 2]}, \"parts\": [1, {\"b\": 2}, \"c\"]}", &o,
			    &e),
		 &e);
	CHECK_STR(o.raw, "{\"a\":[1,2]}");
	CHECK_INT(o.parts.len, 3);
	CHECK_STR(o.parts.items[0], "1");
	CHECK_STR(o.parts.items[1], "{\"b\":2}");
	CHECK_STR(o.parts.items[2], "\"c\"");
	CHECK_ERR(read_other("{\"raw\":[]}", &o, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "raw must be an object");
	CHECK_ERR(read_other("{\"parts\":{}}", &o, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "parts must be a list"));
}

/* `[1,1,...]` or `{"n0":"v",...}` under this name. */
static void add_members(struct buf *b, const char *name, bool map, int n, const char *value)
{
	buf_addf(b, "{\"name\":\"x\",\"%s\":%c", name, map ? '{' : '[');
	for (int i = 0; i < n; i++) {
		if (map)
			buf_addf(b, "%s\"n%d\":", i ? "," : "", i);
		else
			buf_adds(b, i ? "," : "");
		buf_adds(b, value);
	}
	buf_adds(b, map ? "}}" : "]}");
}

TEST(lists_and_maps_have_a_most)
{
	for (int more = 0; more < 2; more++) {
		for (int map = 0; map < 2; map++) {
			cleanup(sample_done) struct sample s = { 0 };
			cleanup(buf_done) struct buf b = buf_make(1 << 20);
			struct err e = { 0 };
			int n;

			add_members(&b, map ? "map" : "list", map, JSON_LIST_MAX + more, "\"v\"");
			n = json_read(b.data, b.len, fields, &s, &e);
			CHECK_INT(n, -more);
			if (more)
				CHECK(e.code == ERR_INVALID && strstr(e.msg, "at most 4096"));
		}
	}
}

TEST(values_are_counted_before_they_are_made)
{
	static const char text[] = "{\"a,[{\\\",\": [1, {}, \"x\"]}"; /* a name with quotes in it */
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct sample s = { 0 };
	struct err e = { 0 };

	CHECK(!json_is_more_than(text, strlen(text), 5));
	CHECK(json_is_more_than(text, strlen(text), 4));
	CHECK(!json_is_more_than("[,", 1, 1)); /* what is behind the end is not of it */
	buf_adds(&b, "{\"zz\":[");
	for (int i = 0; i < JSON_VALUES_MAX - 2; i++)
		buf_adds(&b, "[]");
	CHECK_INT(json_read(b.data, b.len, fields, &s, &e), -1);
	CHECK(strstr(e.msg, "not JSON"));
	buf_adds(&b, "[");
	CHECK_ERR(json_read(b.data, b.len, fields, &s, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "more than 65536 values"));
}

TEST(a_list_of_texts_has_a_most)
{
	for (int more = 0; more < 2; more++) {
		cleanup(other_done) struct other o = { 0 };
		cleanup(buf_done) struct buf b = buf_make(1 << 20);
		struct err e = { 0 };

		add_members(&b, "parts", false, JSON_LIST_MAX + more, "7");
		CHECK_INT(json_read(b.data + 12, b.len - 12, other_fields, &o, &e), -1);
		b.data[11] = '{'; /* without its name */
		CHECK_INT(json_read(b.data + 11, b.len - 11, other_fields, &o, &e), -more);
		if (!more)
			CHECK_INT(o.parts.len, JSON_LIST_MAX);
	}
}

TEST(what_is_of_another_type_is_named)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "{\"name\":\"a\",\"text\":1}", "text must be a string" },
		{ "{\"name\":\"a\",\"list\":{}}", "list must be a list of at most 4096 strings" },
		{ "{\"name\":\"a\",\"map\":[]}", "map must be an object of at most 4096 strings" },
		{ "{\"name\":\"a\",\"map\":{\"k\":1}}", "map.k must be a string" },
		{ "{\"name\":\"a\",\"map\":{\"\":\"v\"}}", "map: \"\" cannot be a name" },
		{ "{\"name\":\"a\",\"count\":\"1\"}", "count must be a whole number" },
		{ "{\"name\":\"a\",\"on\":null}", "on must be true or false" },
		{ "{\"name\":null}", "name must be a string" },
		{ "null", "the body is not JSON: '[' or '{' expected near 'null' (line 1)" },
		{ "[]", "the body is not a JSON object" },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		cleanup(sample_done) struct sample s = { 0 };
		struct err e = { 0 };

		CHECK_ERR(json_read(cases[i].text, strlen(cases[i].text), fields, &s, &e), &e,
			  ERR_INVALID);
		CHECK_STR(e.msg, cases[i].says);
	}
}

TEST(who_errs_in_a_name_is_told_all_names)
{
	cleanup(sample_done) struct sample s = { 0 };
	struct err e = { 0 };

	CHECK_ERR(json_read("{\"x\":1}", 7, fields, &s, &e), &e, ERR_INVALID);
	CHECK_STR(e.fix, "The members there can be: name, count, on, text, list, map.");
}

TEST(names_that_do_not_all_fit_end_with_a_whole_one)
{
	struct json_field many[40] = { 0 };
	char names[40][16], none[8];

	for (size_t n = 1; n < array_len(many); n++) {
		struct err e = { 0 };
		const char *end;

		snprintf(names[n - 1], sizeof(names[n - 1]), "member_%02zu", n);
		many[n - 1] = (struct json_field){ .name = names[n - 1], .type = JSON_STR };
		many[n].type = JSON_END;
		CHECK_ERR(json_read("{\"x\":1}", 7, many, none, &e), &e, ERR_INVALID);
		CHECK(strstr(e.fix, "The members there can be: member_01"));
		CHECK(e.fix[strlen(e.fix) - 1] == '.');
		end = strstr(e.fix, ", and others: docs/openapi.yaml.");
		if (!end) /* then all of them are there */
			CHECK(strstr(e.fix, names[n - 1]));
		else
			CHECK(end[-3] == '_' && n > 12);
	}
}

TEST(a_remediation_that_is_too_long_ends_with_a_word)
{
	static const char word[] = "0123456789 ";
	char text[400] = "";
	struct err e = { 0 };

	for (size_t i = 0; i < 30; i++)
		memcpy(text + i * strlen(word), word, sizeof(word));
	err_fix(&e, "%s", text);
	CHECK(strlen(e.fix) < sizeof(e.fix) && strlen(e.fix) > sizeof(e.fix) - 20);
	CHECK_STR(e.fix + strlen(e.fix) - 8, "6789 ...");
	err_fix(&e, "%.*s", (int)sizeof(e.fix) - 1, text); /* just fits */
	CHECK(strlen(e.fix) == sizeof(e.fix) - 1 && !strstr(e.fix, "..."));
	memset(text, 'x', sizeof(text) - 1); /* one word */
	err_fix(&e, "%s", text);
	CHECK_INT(strlen(e.fix), sizeof(e.fix) - 1);
}

TEST(the_longest_string_fits)
{
	cleanup(sample_done) struct sample s = { 0 };
	struct err e;

	CHECK_OK(json_read("{\"name\":\"1234567\",\"on\":false}", 29, fields, &s, &e), &e);
	CHECK_STR(s.name, "1234567");
	CHECK(!s.on);
}

TEST(only_what_must_be_escaped_is)
{
	cleanup(buf_done) struct buf b = buf_make(1024);

	json_add_text(&b, "\x1f \x7f\0\t/", 6);
	CHECK_STR(buf_str(&b), "\"\\u001f \x7f\\u0000\\u0009/\"");
}

TEST(bytes_are_text_or_base64)
{
	cleanup(buf_done) struct buf b = buf_make(1024);

	json_open(&b, '{');
	json_bytes(&b, "a", "x\n", 2);
	json_bytes(&b, "b", "\xff\x00", 2);
	buf_adds(&b, "}");
	CHECK_STR(buf_str(&b), "{\"a\":\"x\\n\",\"b_base64\":\"/wA=\"}");
}

TEST(a_map_is_written_as_it_was_read)
{
	cleanup(buf_done) struct buf b = buf_make(100);
	cleanup(strv_done) struct strv v = { 0 };

	json_map(&b, &v);
	CHECK_STR(buf_str(&b), "{}");
	buf_clear(&b);
	strv_add(&v, "a=b=c");
	strv_add(&v, "c=");
	json_map(&b, &v);
	CHECK_STR(buf_str(&b), "{\"a\":\"b=c\",\"c\":\"\"}");
}

TEST(a_tree_has_numbers_words_members_and_an_end)
{
	static const char text[] = "{\"b\":true,\"n\":7,\"s\":\"a\\u0000b\","
				   "\"o\":{\"k\":\"v\",\"l\":3}}";
	struct json *tree = NULL;
	const struct json *o;
	const char *name, *value;
	struct err e;

	CHECK_ERR(json_parse(text, sizeof(text) - 1, &tree, &e), &e, ERR_INVALID); /* NUL */
	CHECK(!tree);
	CHECK_OK(json_parse_bytes(text, sizeof(text) - 1, &tree, &e), &e);
	CHECK(json_get_bool(tree, "b") && !json_get_bool(tree, "n") && !json_get_bool(tree, "x"));
	CHECK_INT(json_number(json_get(tree, "n")), 7);
	CHECK_INT(json_number(json_get(tree, "s")), 0);
	CHECK_INT(json_text_len(json_get(tree, "s")), 3);
	CHECK(json_is_text(json_get(tree, "s")) && !json_is_text(json_get(tree, "n")));
	CHECK(!json_is_text(NULL));
	CHECK_STR(json_text(json_get(tree, "n")), "");
	o = json_get(tree, "o");
	CHECK(json_member(o, 0, &name, &value));
	CHECK_STR(name, "k");
	CHECK_STR(value, "v");
	CHECK(json_member(o, 1, &name, &value));
	CHECK_STR(name, "l");
	CHECK_STR(value, "");
	CHECK(!json_member(o, 2, &name, &value));
	CHECK(!json_member(NULL, 0, &name, &value));
	json_free(&tree);
	CHECK(!tree);
	CHECK_ERR(json_parse("{\"a\":1,\"a\":2}", 13, &tree, &e), &e, ERR_INVALID);
	CHECK_OK(json_parse("3", 1, &tree, &e), &e);
	CHECK_INT(json_number(tree), 3);
	json_free(&tree);
}

#include "lib/json.h"

#include <stdlib.h>

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

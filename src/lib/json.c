#include "lib/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/str.h"

static void json_unref(json_t **v)
{
	json_decref(*v);
}

static const struct json_field *field_find(const struct json_field *f, const char *name)
{
	for (; f->type != JSON_END; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

static int read_list(const struct json_field *f, const json_t *v, struct strv *list,
		     struct err *e)
{
	if (!json_is_array(v) || json_array_size(v) > JSON_LIST_MAX)
		return err_set(e, ERR_INVALID, "%s must be a list of at most %d strings", f->name,
			       JSON_LIST_MAX);
	for (size_t i = 0; i < json_array_size(v); i++) {
		const json_t *item = json_array_get(v, i);

		if (!json_is_string(item))
			return err_set(e, ERR_INVALID, "%s[%zu] must be a string", f->name, i);
		strv_add(list, json_string_value(item));
	}
	return 0;
}

static int read_map(const struct json_field *f, json_t *v, struct strv *list, struct err *e)
{
	const char *name;
	json_t *item;

	if (!json_is_object(v) || json_object_size(v) > JSON_LIST_MAX)
		return err_set(e, ERR_INVALID, "%s must be an object of at most %d strings",
			       f->name, JSON_LIST_MAX);
	json_object_foreach(v, name, item) {
		if (!json_is_string(item))
			return err_set(e, ERR_INVALID, "%s.%.40s must be a string", f->name, name);
		if (!name[0] || strchr(name, '='))
			return err_set(e, ERR_INVALID, "%s: \"%.40s\" cannot be a name", f->name,
				       name);
		strv_addf(list, "%s=%s", name, json_string_value(item));
	}
	return 0;
}

static int read_str(const struct json_field *f, const json_t *v, char *at, struct err *e)
{
	if (!json_is_string(v))
		return err_set(e, ERR_INVALID, "%s must be a string", f->name);
	if (json_string_length(v) >= f->size)
		return err_set(e, ERR_INVALID, "%s is longer than %zu bytes", f->name, f->size - 1);
	memcpy(at, json_string_value(v), json_string_length(v) + 1);
	return 0;
}

static int read_word(const struct json_field *f, const json_t *v, char *at, struct err *e)
{
	if (!json_is_integer(v))
		return read_str(f, v, at, e);
	if ((size_t)snprintf(at, f->size, "%" JSON_INTEGER_FORMAT, json_integer_value(v)) >=
	    f->size)
		return err_set(e, ERR_INVALID, "%s is too large", f->name);
	return 0;
}

static int read_raw(const struct json_field *f, const json_t *v, char **at, struct err *e)
{
	if (!json_is_object(v))
		return err_set(e, ERR_INVALID, "%s must be an object", f->name);
	*at = json_dumps(v, JSON_COMPACT);
	return *at ? 0 : err_set(e, ERR_INVALID, "%s cannot be read", f->name);
}

static int read_texts(const struct json_field *f, const json_t *v, struct strv *list,
		      struct err *e)
{
	if (!json_is_array(v) || json_array_size(v) > JSON_LIST_MAX)
		return err_set(e, ERR_INVALID, "%s must be a list of at most %d", f->name,
			       JSON_LIST_MAX);
	for (size_t i = 0; i < json_array_size(v); i++) {
		char *text = json_dumps(json_array_get(v, i), JSON_COMPACT | JSON_ENCODE_ANY);

		strv_add(list, text ? text : "");
		free(text);
	}
	return 0;
}

static int field_read(const struct json_field *f, json_t *v, void *record, struct err *e)
{
	void *at = (char *)record + f->offset;

	switch (f->type) {
	case JSON_STR:
		return read_str(f, v, at, e);
	case JSON_WORD:
		return read_word(f, v, at, e);
	case JSON_TEXT:
		if (!json_is_string(v))
			return err_set(e, ERR_INVALID, "%s must be a string", f->name);
		*(char **)at = xstrdup(json_string_value(v));
		return 0;
	case JSON_INT:
		if (!json_is_integer(v))
			return err_set(e, ERR_INVALID, "%s must be a whole number", f->name);
		*(int64_t *)at = json_integer_value(v);
		return 0;
	case JSON_BOOL:
		if (!json_is_boolean(v))
			return err_set(e, ERR_INVALID, "%s must be true or false", f->name);
		*(bool *)at = json_is_true(v);
		return 0;
	case JSON_STRV:
		return read_list(f, v, at, e);
	case JSON_MAP:
		return read_map(f, v, at, e);
	case JSON_RAW:
		return read_raw(f, v, at, e);
	case JSON_LIST:
		return read_texts(f, v, at, e);
	case JSON_END:
		break;
	}
	return err_set(e, ERR_INTERNAL, "bad field table at %s", f->name);
}

/* All names, or as many as a remediation has room for. */
static int unknown_member(const struct json_field *fields, const char *name, struct err *e)
{
	static const char text[] = "The members there can be: ";
	static const char more[] = ", and others: docs/openapi.yaml.";
	cleanup(buf_done) struct buf known = buf_make(1024);
	size_t end;

	for (const struct json_field *f = fields; f->type != JSON_END; f++)
		buf_addf(&known, "%s%s", f == fields ? "" : ", ", f->name);
	err_set(e, ERR_INVALID, "unknown member \"%.40s\"", name);
	if (known.len + sizeof(text) < sizeof(e->fix))
		return err_fix(e, "%s%s.", text, buf_str(&known));
	for (end = sizeof(e->fix) - sizeof(text) - sizeof(more); end > 0; end--)
		if (known.data[end] == ',')
			break;
	return err_fix(e, "%s%.*s%s", text, (int)end, buf_str(&known), more);
}

bool json_is_more_than(const char *text, size_t len, size_t values)
{
	bool quoted = false;
	size_t n = 0;

	for (size_t i = 0; i < len && n <= values; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
			n++;
	}
	return n > values;
}

int json_read(const char *text, size_t len, const struct json_field *fields,
	      void *record, struct err *e)
{
	cleanup(json_unref) json_t *root = NULL;
	json_error_t why;
	const char *name;
	json_t *value;

	if (json_is_more_than(text, len, JSON_VALUES_MAX))
		return err_set(e, ERR_INVALID, "the body has more than %d values",
			       JSON_VALUES_MAX);
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!root && len > 0)
		return err_set(e, ERR_INVALID, "the body is not JSON: %.80s (line %d)", why.text,
			       why.line);
	if (!json_is_object(root))
		return err_set(e, ERR_INVALID, "the body is not a JSON object");

	json_object_foreach(root, name, value) {
		const struct json_field *f = field_find(fields, name);

		if (!f)
			return unknown_member(fields, name, e);
		if (field_read(f, value, record, e) < 0)
			return -1;
		if (f->given)
			*(bool *)((char *)record + f->given) = true;
	}
	for (const struct json_field *f = fields; f->type != JSON_END; f++)
		if (f->required && !json_object_get(root, f->name))
			return err_set(e, ERR_INVALID, "%s is missing", f->name);
	return 0;
}

/* Megabytes of these may come from a guest while a loop waits: no printf here. */
static void add_escaped(struct buf *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char text[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

	if (c == '"' || c == '\\' || c == '\n') {
		text[1] = c == '\n' ? 'n' : (char)c;
		return buf_add(out, text, 2);
	}
	buf_add(out, text, sizeof(text));
}

/* What is no UTF-8 stands as U+FFFD, byte by byte: a JSON text is always one. */
void json_add_text(struct buf *out, const char *s, size_t len)
{
	const char *from = s, *end = s + len;

	buf_add(out, "\"", 1);
	for (const char *p = s; p < end;) {
		unsigned char c = (unsigned char)*p;
		size_t n = c < 0x80 ? 1 : utf8_char_len(p, (size_t)(end - p));

		if (n > 0 && c >= 0x20 && c != '"' && c != '\\') {
			p += n;
			continue;
		}
		buf_add(out, from, (size_t)(p - from));
		from = ++p;
		if (n > 0)
			add_escaped(out, c);
		else
			buf_adds(out, "\xef\xbf\xbd");
	}
	buf_add(out, from, (size_t)(end - from));
	buf_add(out, "\"", 1);
}

void json_add_string(struct buf *out, const char *s)
{
	json_add_text(out, s, strlen(s));
}

static void add_comma(struct buf *out)
{
	if (out->len > 0 && !strchr("{[:", out->data[out->len - 1]))
		buf_add(out, ",", 1);
}

void json_open(struct buf *out, char bracket)
{
	add_comma(out);
	buf_add(out, &bracket, 1);
}

void json_key(struct buf *out, const char *name)
{
	add_comma(out);
	json_add_string(out, name);
	buf_add(out, ":", 1);
}

void json_str(struct buf *out, const char *name, const char *value)
{
	json_key(out, name);
	json_add_string(out, value);
}

void json_bytes(struct buf *out, const char *name, const void *data, size_t len)
{
	char key[64];

	if (utf8_valid_prefix(data, len) == len) {
		json_key(out, name);
		json_add_text(out, data, len);
		return;
	}
	snprintf(key, sizeof(key), "%s_base64", name);
	json_key(out, key);
	buf_adds(out, "\"");
	base64_add(out, data, len);
	buf_adds(out, "\"");
}

void json_int(struct buf *out, const char *name, int64_t value)
{
	json_key(out, name);
	buf_addf(out, "%" PRId64, value);
}

void json_bool(struct buf *out, const char *name, bool value)
{
	json_key(out, name);
	buf_addf(out, value ? "true" : "false");
}

void json_map(struct buf *out, const struct strv *map)
{
	json_open(out, '{');
	for (size_t i = 0; i < map->len; i++) {
		const char *item = map->items[i];
		cleanup(free_ptr) char *name = xstrdup(item);

		name[strcspn(item, "=")] = '\0';
		json_str(out, name, item + strlen(name) + 1);
	}
	buf_adds(out, "}");
}

/* struct json is jansson's json_t under a name of ours, never defined. */
static const json_t *tree(const struct json *v)
{
	return (const json_t *)(const void *)v;
}

static const struct json *leaf(const json_t *v)
{
	return (const struct json *)(const void *)v;
}

static int parse(const char *text, size_t len, size_t flags, struct json **ret, struct err *e)
{
	json_error_t why;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES | flags, &why);

	if (!root)
		return err_set(e, ERR_INVALID, "not JSON: %.80s (line %d)", why.text, why.line);
	*ret = (struct json *)(void *)root;
	return 0;
}

int json_parse(const char *text, size_t len, struct json **ret, struct err *e)
{
	return parse(text, len, JSON_DECODE_ANY, ret, e);
}

int json_parse_bytes(const char *text, size_t len, struct json **ret, struct err *e)
{
	return parse(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, ret, e);
}

void json_free(struct json **root)
{
	json_decref((json_t *)(void *)*root);
	*root = NULL;
}

const struct json *json_get(const struct json *object, const char *name)
{
	return leaf(json_object_get(tree(object), name));
}

const struct json *json_at(const struct json *list, size_t i)
{
	return leaf(json_array_get(tree(list), i));
}

const char *json_text(const struct json *value)
{
	const char *s = json_string_value(tree(value));

	return s ? s : "";
}

int64_t json_number(const struct json *value)
{
	return json_integer_value(tree(value));
}

size_t json_text_len(const struct json *value)
{
	return json_string_length(tree(value));
}

bool json_is_text(const struct json *value)
{
	return json_is_string(tree(value));
}

const char *json_get_str(const struct json *object, const char *name)
{
	return json_text(json_get(object, name));
}

int64_t json_get_int(const struct json *object, const char *name)
{
	return json_integer_value(tree(json_get(object, name)));
}

bool json_get_bool(const struct json *object, const char *name)
{
	return json_is_true(tree(json_get(object, name)));
}

size_t json_len(const struct json *list)
{
	return json_array_size(tree(list));
}

bool json_member(const struct json *object, size_t i, const char **name, const char **value)
{
	json_t *o = (json_t *)tree(object); /* jansson's iterators are not const */
	void *it = o ? json_object_iter(o) : NULL;

	while (it && i-- > 0)
		it = json_object_iter_next(o, it);
	if (!it)
		return false;
	*name = json_object_iter_key(it);
	*value = json_text(leaf(json_object_iter_value(it)));
	return true;
}

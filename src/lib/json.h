/*
 * JSON: objects to and from plain structs by table, a writer that appends to
 * a buffer, and a read-only tree for replies whose shape is a list.
 *
 * One table per record says which member goes where. Unknown members are an
 * error: a typing mistake in a request must not pass in silence. So are
 * duplicate members, NUL in strings, invalid UTF-8 and numbers that do not fit.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"

#define JSON_LIST_MAX   4096  /* members of one list or map in a request */
#define JSON_VALUES_MAX 65536 /* values in a request: a million of them take half a second */

enum json_type {
	JSON_END,
	JSON_STR,  /* char[size] */
	JSON_WORD, /* char[size], from a string or a whole number */
	JSON_TEXT, /* char *, owned by the record */
	JSON_INT,  /* int64_t */
	JSON_BOOL, /* bool */
	JSON_STRV, /* struct strv, from a list of strings */
	JSON_MAP,  /* struct strv of "name=value", from an object of strings */
	JSON_RAW,  /* char *, owned by the record: the text of an object, to be read by itself */
	JSON_LIST  /* struct strv: the text of each member of a list, to be read by itself */
};

struct json_field {
	const char *name;
	enum json_type type;
	size_t offset;
	size_t size; /* JSON_STR, JSON_WORD: room with its NUL */
	bool required;
	size_t given; /* offset of a bool that is set if the member is there; 0: there is none */
};

/* clang-format off */
#define JSON_FIELD(kind, record, member, ...) \
	{ #member, kind, offsetof(struct record, member), \
	  sizeof(((struct record *)0)->member), __VA_ARGS__ }
#define JSON_FIELD_STR(record, member, ...)  JSON_FIELD(JSON_STR, record, member, __VA_ARGS__)
#define JSON_FIELD_WORD(record, member, ...) JSON_FIELD(JSON_WORD, record, member, __VA_ARGS__)
#define JSON_FIELD_TEXT(record, member, ...) JSON_FIELD(JSON_TEXT, record, member, __VA_ARGS__)
#define JSON_FIELD_INT(record, member, ...)  JSON_FIELD(JSON_INT, record, member, __VA_ARGS__)
#define JSON_FIELD_BOOL(record, member, ...) JSON_FIELD(JSON_BOOL, record, member, __VA_ARGS__)
#define JSON_FIELD_STRV(record, member, ...) JSON_FIELD(JSON_STRV, record, member, __VA_ARGS__)
#define JSON_FIELD_MAP(record, member, ...)  JSON_FIELD(JSON_MAP, record, member, __VA_ARGS__)
#define JSON_FIELD_RAW(record, member, ...)  JSON_FIELD(JSON_RAW, record, member, __VA_ARGS__)
#define JSON_FIELD_LIST(record, member, ...) JSON_FIELD(JSON_LIST, record, member, __VA_ARGS__)
/* Where it is kept that the member is there. Not in the first member of a record. */
#define JSON_GIVEN(record, member) .given = offsetof(struct record, member)
#define JSON_FIELD_END \
	{ .type = JSON_END }
/* clang-format on */

/* Each value takes many times the time and memory of its text: counted before they are made. */
bool json_is_more_than(const char *text, size_t len, size_t values);

/* On failure the record may be partly filled; what it owns is still the caller's to free. */
must_check int json_read(const char *text, size_t len, const struct json_field *fields,
			 void *record, struct err *e);

/* Writing. A comma comes by itself unless the last byte opened something. */
void json_add_string(struct buf *out, const char *s); /* quoted and escaped */
void json_add_text(struct buf *out, const char *s, size_t len);
void json_open(struct buf *out, char bracket); /* '{' or '[' as an element */
void json_key(struct buf *out, const char *name);
void json_str(struct buf *out, const char *name, const char *value);
/* As text, or, if it is none, as base64 under name_base64. */
void json_bytes(struct buf *out, const char *name, const void *data, size_t len);
void json_int(struct buf *out, const char *name, int64_t value);
void json_bool(struct buf *out, const char *name, bool value);
void json_map(struct buf *out, const struct strv *map); /* {"name":"value"} of a JSON_MAP */

/* Reading a reply: a tree, and lookups that never fail, only miss. */
struct json;
must_check int json_parse(const char *text, size_t len, struct json **ret, struct err *e);
/* The same where a string may hold NUL: then json_text_len() says how long it is. */
must_check int json_parse_bytes(const char *text, size_t len, struct json **ret, struct err *e);
/* For cleanup(): only on what json_parse() gave. */
void json_free(struct json **root);
const struct json *json_get(const struct json *object, const char *name); /* or NULL */
const struct json *json_at(const struct json *list, size_t i);            /* or NULL */
const char *json_get_str(const struct json *object, const char *name);    /* or "" */
int64_t json_get_int(const struct json *object, const char *name);        /* or 0 */
bool json_get_bool(const struct json *object, const char *name);          /* or false */
/* The i-th member of an object of strings; false behind the last. */
bool json_member(const struct json *object, size_t i, const char **name, const char **value);
size_t json_len(const struct json *list);
const char *json_text(const struct json *value); /* of a string, or "" */
int64_t json_number(const struct json *value);   /* of a whole number, or 0 */
size_t json_text_len(const struct json *value);  /* of a string, or 0 */
bool json_is_text(const struct json *value);     /* NULL is none */

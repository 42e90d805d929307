/*
 * Plain structs on the wire, by table: one row per member, the same row for
 * writing and reading. A decoded record is complete, or refused.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "proto/reader.h"

enum field_type {
	FIELD_END,
	FIELD_U32,
	FIELD_U64,
	FIELD_STR /* char[size] */
};

struct field {
	enum field_type type;
	size_t offset;
	size_t size;
};

/* clang-format off */
#define FIELD(kind, record, member) \
	{ kind, offsetof(struct record, member), sizeof(((struct record *)0)->member) }
/* clang-format on */

void record_encode(struct buf *out, const struct field *fields, const void *record);
must_check int record_decode(struct bytes wire, const struct field *fields, void *record,
			     struct err *e);

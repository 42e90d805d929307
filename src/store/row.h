/*
 * SQL by table, for this room only: a statement is prepared when it is first
 * used on a connection, its values go as text, never into the SQL, and its
 * columns come back into the members of a struct, complete or not at all.
 */
#pragma once

#include "store/connection.h"

#define STORE_ARGS_MAX 32

struct statement {
	const char *name, *sql;
};

struct arg {
	const char *text; /* NULL: the number, or SQL's NULL */
	uint64_t number;
	bool is_number;
};

struct args {
	const struct arg *items;
	size_t len;
};

/* clang-format off */
#define TEXT(s)     { .text = (s) }
#define NUMBER(n)   { .number = (uint64_t)(n), .is_number = true }
#define ARGS(...)   ((struct args){ (const struct arg[]){ __VA_ARGS__ }, \
				    array_len(((const struct arg[]){ __VA_ARGS__ })) })
#define NO_ARGS     ((struct args){ NULL, 0 })
/* clang-format on */

enum column_type {
	COLUMN_END,
	COLUMN_STR, /* char[size] */
	COLUMN_INT, /* int64_t, not negative */
	COLUMN_U64,
	COLUMN_BOOL,
	COLUMN_ID,         /* of a sandbox: char[SANDBOX_ID_SIZE], of the shape that is given out */
	COLUMN_ID_OR_NONE, /* the same, or "" */
	COLUMN_KEY,        /* of an identity, or "": char[IDENTITY_LEGACY_SIZE] */
	COLUMN_WORD        /* an enum, by its `read` */
};

/* One row per column, in the order the statement gives them. */
struct column {
	const char *name;
	enum column_type type;
	size_t offset, size;
	bool (*read)(const char *text, void *at);
};

/* clang-format off */
#define COLUMN(kind, record, member, ...) \
	{ #member, kind, offsetof(struct record, member), \
	  sizeof(((struct record *)0)->member), __VA_ARGS__ }
#define COLUMNS_END { .type = COLUMN_END }
/* clang-format on */

/* A time column as the milliseconds since 1970 that our structs hold. */
#define SQL_MS(column) "(extract(epoch FROM " column ") * 1000)::bigint"

/* $n milliseconds from now, by the database's clock. */
#define SQL_AFTER(n)   "now() + " n "::bigint * interval '1 millisecond'"

/* One transaction. The caller clears *ret. */
must_check int store_run(struct store *s, const struct statement *st, struct args args,
			 PGresult **ret, struct err *e);

/*
 * Several statements as one transaction: what is run between begin and commit.
 * A commit that fails with ERR_BUSY is unknown, like any other.
 */
must_check int store_begin(struct store *s, struct err *e);
must_check int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s); /* also after a failure, and when nothing is open */

must_check int row_read(const PGresult *res, int row, const struct column *columns, void *record,
			struct err *e);

/* The same, and what cannot be read stays as it is: then 1, and `e` names the first of it. */
must_check int row_read_some(const PGresult *res, int row, const struct column *columns,
			     void *record, struct err *e);

/* Run it and read its first row, if there is one: 1, 0 for none, or -1. */
must_check int store_run_one(struct store *s, const struct statement *st, struct args args,
			     const struct column *columns, void *record, struct err *e);

#include "store/row.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/sandbox.h"
#include "lib/str.h"

static bool is_prepared(const struct store *s, const struct statement *st)
{
	for (size_t i = 0; i < s->prepared_len; i++)
		if (s->prepared[i] == st)
			return true;
	return false;
}

static int prepare(struct store *s, const struct statement *st, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (is_prepared(s, st))
		return 0;
	assert(s->prepared_len < STORE_STATEMENTS_MAX);
	s->counts.prepares++;
	res = PQprepare(s->conn, st->name, st->sql, 0, NULL);
	if (PQresultStatus(res) != PGRES_COMMAND_OK)
		return connection_fail(s, res, e);
	s->prepared[s->prepared_len++] = st;
	return 0;
}

int store_run(struct store *s, const struct statement *st, struct args args, PGresult **ret,
	      struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	const char *values[STORE_ARGS_MAX];
	char numbers[STORE_ARGS_MAX][24];

	assert(args.len <= STORE_ARGS_MAX);
	for (size_t i = 0; i < args.len; i++) {
		snprintf(numbers[i], sizeof(numbers[i]), "%" PRIu64, args.items[i].number);
		values[i] = args.items[i].is_number ? numbers[i] : args.items[i].text;
	}
	if (connection_ready(s, e) < 0 || prepare(s, st, e) < 0)
		return -1;

	s->counts.transactions += !s->open;
	res = PQexecPrepared(s->conn, st->name, (int)args.len, values, NULL, NULL, 0);
	if (PQresultStatus(res) != PGRES_TUPLES_OK && PQresultStatus(res) != PGRES_COMMAND_OK) {
		connection_fail(s, res, e);
		return e->code == ERR_BUSY ? -1 : err_wrap(e, "%s", st->name);
	}
	*ret = take_ptr(res);
	return 0;
}

int store_begin(struct store *s, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (connection_ready(s, e) < 0)
		return -1;
	res = PQexec(s->conn, "BEGIN");
	if (PQresultStatus(res) != PGRES_COMMAND_OK)
		return connection_fail(s, res, e);
	s->counts.transactions++;
	s->open = true;
	return 0;
}

int store_commit(struct store *s, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	s->open = false;
	res = PQexec(s->conn, "COMMIT");
	if (PQresultStatus(res) != PGRES_COMMAND_OK)
		return connection_fail(s, res, e);
	if (strcmp(PQcmdStatus(res), "COMMIT") != 0)
		return err_set(e, ERR_INTERNAL, "database: the transaction was rolled back");
	return 0;
}

void store_rollback(struct store *s)
{
	if (s->open && s->conn)
		PQclear(PQexec(s->conn, "ROLLBACK"));
	s->open = false;
}

/*
 * What the rest of Berth makes paths, cgroups and requests of has the shape that was given out.
 */
static bool read_id(const struct column *c, const char *text, void *at)
{
	struct err ignored;

	return sandbox_id_check(text, &ignored) == 0 && str_copy(at, c->size, text);
}

static bool read_key(const struct column *c, const char *text, void *at)
{
	enum identity_kind kind;
	struct err ignored;

	if (text[0] && identity_key_check(text, &kind, &ignored) < 0)
		return false;
	return str_copy(at, c->size, text);
}

static bool column_read(const struct column *c, const char *text, void *at)
{
	struct err ignored;
	uint64_t n;

	switch (c->type) {
	case COLUMN_STR:
		return str_copy(at, c->size, text);
	case COLUMN_U64:
		return str_u64(text, at, &ignored) == 0;
	case COLUMN_INT:
		if (str_u64(text, &n, &ignored) < 0 || n > INT64_MAX)
			return false;
		*(int64_t *)at = (int64_t)n;
		return true;
	case COLUMN_BOOL:
		*(bool *)at = text[0] == 't';
		return strcmp(text, "t") == 0 || strcmp(text, "f") == 0;
	case COLUMN_ID_OR_NONE:
		return text[0] ? read_id(c, text, at) : str_copy(at, c->size, text);
	case COLUMN_ID:
		return read_id(c, text, at);
	case COLUMN_KEY:
		return read_key(c, text, at);
	case COLUMN_WORD:
		return c->read(text, at);
	case COLUMN_END:
		break;
	}
	return false;
}

int row_read_some(const PGresult *res, int row, const struct column *columns, void *record,
		  struct err *e)
{
	int i = 0, bad = 0;

	for (const struct column *c = columns; c->type != COLUMN_END; c++, i++) {
		const char *name = PQfname(res, i); /* NULL past the last */

		if (!name || strcmp(name, c->name) != 0)
			return err_set(e, ERR_INTERNAL, "database: column %d is \"%s\", not \"%s\"",
				       i, name ? name : "", c->name);
		if (!PQgetisnull(res, row, i) &&
		    column_read(c, PQgetvalue(res, row, i), (char *)record + c->offset))
			continue;
		if (!bad)
			err_set(e, ERR_INTERNAL, "database: cannot be a %s: \"%.60s\"", c->name,
				PQgetvalue(res, row, i));
		bad = 1;
	}
	return bad;
}

int row_read(const PGresult *res, int row, const struct column *columns, void *record,
	     struct err *e)
{
	return row_read_some(res, row, columns, record, e) == 0 ? 0 : -1;
}

int store_run_one(struct store *s, const struct statement *st, struct args args,
		  const struct column *columns, void *record, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, st, args, &res, e) < 0)
		return -1;
	if (PQntuples(res) == 0)
		return 0;
	return row_read(res, 0, columns, record, e) < 0 ? -1 : 1;
}

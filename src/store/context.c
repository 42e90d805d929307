#include "store/context.h"

#include "store/row.h"

/* clang-format off */
#define CONTEXT_COLUMNS \
	"c.id, c.sandbox_id AS sandbox, c.name, c.language, c.cwd, c.env, c.timeout_ms, " \
	"c.started::int AS started, c.runs, c.restarts, " \
	SQL_MS("c.created_at") " AS created_ms, " SQL_MS("c.last_used_at") " AS last_used_ms"

static const struct column columns[] = {
	COLUMN(COLUMN_STR, context_record, id),
	COLUMN(COLUMN_ID, context_record, sandbox),
	COLUMN(COLUMN_STR, context_record, name),
	COLUMN(COLUMN_STR, context_record, language),
	COLUMN(COLUMN_STR, context_record, cwd),
	COLUMN(COLUMN_STR, context_record, env),
	COLUMN(COLUMN_U64, context_record, timeout_ms),
	COLUMN(COLUMN_U64, context_record, started),
	COLUMN(COLUMN_U64, context_record, runs),
	COLUMN(COLUMN_U64, context_record, restarts),
	COLUMN(COLUMN_U64, context_record, created_ms),
	COLUMN(COLUMN_U64, context_record, last_used_ms),
	COLUMNS_END
};

static const struct statement insert = { "context-insert",
	"INSERT INTO context AS c (id, sandbox_id, name, language, cwd, env, timeout_ms) "
	"SELECT $1, s.id, $3, $4, $5, $6, $7::bigint FROM sandbox s WHERE s.id = $2 "
	"AND (SELECT count(*) FROM context WHERE sandbox_id = $2) < $8::bigint "
	"ON CONFLICT DO NOTHING RETURNING " CONTEXT_COLUMNS };
static const struct statement get = { "context-get",
	"SELECT " CONTEXT_COLUMNS " FROM context c "
	"WHERE c.sandbox_id = $1 AND (c.id = $2 OR c.name = $2) ORDER BY c.id = $2 DESC LIMIT 1" };
static const struct statement list = { "context-list",
	"SELECT " CONTEXT_COLUMNS " FROM context c WHERE c.sandbox_id = $1 "
	"ORDER BY c.created_at, c.id" };
static const struct statement ran = { "context-ran",
	"WITH b AS (SELECT id, started FROM context WHERE id = $1 FOR UPDATE) "
	"UPDATE context c SET runs = runs + 1, last_used_at = now(), started = true, "
	"restarts = restarts + CASE WHEN b.started AND $2::bigint = 1 THEN 1 ELSE 0 END "
	"FROM b WHERE c.id = b.id "
	"RETURNING c.id, c.sandbox_id AS sandbox, c.name, c.language, c.cwd, c.env, c.timeout_ms, "
	"b.started::int AS started, c.runs, c.restarts, " SQL_MS("c.created_at") " AS created_ms, "
	SQL_MS("c.last_used_at") " AS last_used_ms" };
static const struct statement erase = { "context-delete",
	"DELETE FROM context WHERE id = $1 RETURNING 1" };
/* clang-format on */

int store_context_insert(struct store *s, const struct context_record *c,
			 struct context_record *ret, struct err *e)
{
	struct context_record got = { 0 };
	int n = store_run_one(s, &insert,
			      ARGS(TEXT(c->id), TEXT(c->sandbox), TEXT(c->name), TEXT(c->language),
				   TEXT(c->cwd), TEXT(c->env), NUMBER(c->timeout_ms),
				   NUMBER(STORE_CONTEXTS_MAX)),
			      columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0) {
		struct err ignored;

		if (store_context_get(s, c->sandbox, c->name, ret, &ignored) == 0)
			return 0;
		err_set(e, ERR_LIMIT, "sandbox %s has %d contexts, or was just deleted", c->sandbox,
			STORE_CONTEXTS_MAX);
		return err_fix(e, "Delete contexts that are not needed any more.");
	}
	*ret = got;
	return 1;
}

int store_context_get(struct store *s, const char *sandbox, const char *id,
		      struct context_record *ret, struct err *e)
{
	struct context_record got = { 0 };
	int n = store_run_one(s, &get, ARGS(TEXT(sandbox), TEXT(id)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0) {
		err_set(e, ERR_NOT_FOUND, "sandbox %s has no context %.63s", sandbox, id);
		return err_fix(e, "GET /v1/sandboxes/%s/contexts lists those it has.", sandbox);
	}
	*ret = got;
	return 0;
}

int store_context_list(struct store *s, const char *sandbox, context_fn *on_row, void *arg,
		       struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &list, ARGS(TEXT(sandbox)), &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct context_record got = { 0 };

		if (row_read(res, i, columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

int store_context_ran(struct store *s, const char *id, bool fresh, struct context_record *ret,
		      struct err *e)
{
	struct context_record got = { 0 };
	int n = store_run_one(s, &ran, ARGS(TEXT(id), NUMBER(fresh)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_NOT_FOUND, "the context %.63s was deleted", id);
	*ret = got;
	return 0;
}

int store_context_delete(struct store *s, const char *id, bool *found, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &erase, ARGS(TEXT(id)), &res, e) < 0)
		return -1;
	*found = PQntuples(res) > 0;
	return 0;
}

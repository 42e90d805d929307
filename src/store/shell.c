#include "store/shell.h"

#include <stdlib.h>

#include "store/row.h"

/* clang-format off */
#define SHELL_COLUMNS "name, cwd, env, made_by, " SQL_MS("created_at") " AS created_ms"

static const struct column columns[] = {
	COLUMN(COLUMN_STR, shell_row, name),
	COLUMN(COLUMN_STR, shell_row, cwd),
	COLUMN(COLUMN_STR, shell_row, env),
	COLUMN(COLUMN_STR, shell_row, made_by),
	COLUMN(COLUMN_U64, shell_row, created_ms),
	COLUMNS_END
};

static const struct statement insert = { "shell-insert",
	"INSERT INTO shell (sandbox_id, name, cwd, env, made_by) SELECT $1, $2, $3, $4, $5 "
	"WHERE (SELECT count(*) FROM shell WHERE sandbox_id = $1) < $6::bigint "
	"ON CONFLICT DO NOTHING RETURNING " SHELL_COLUMNS };
static const struct statement get = { "shell-get",
	"SELECT " SHELL_COLUMNS " FROM shell WHERE sandbox_id = $1 AND name = $2" };
static const struct statement list = { "shell-list",
	"SELECT " SHELL_COLUMNS " FROM shell WHERE sandbox_id = $1 ORDER BY name" };
static const struct statement remove_one = { "shell-remove",
	"DELETE FROM shell WHERE sandbox_id = $1 AND name = $2" };
/* clang-format on */

int store_shell_get(struct store *s, const char *sandbox, const char *name, struct shell_row *ret,
		    struct err *e)
{
	int n = store_run_one(s, &get, ARGS(TEXT(sandbox), TEXT(name)), columns, ret, e);

	if (n < 0)
		return -1;
	if (n == 0) {
		err_set(e, ERR_NOT_FOUND, "there is no shell %s in %s", name, sandbox);
		return err_fix(e, "Create it: POST /v1/sandboxes/%.60s/shells.", sandbox);
	}
	return 0;
}

int store_shell_add(struct store *s, const char *sandbox, const struct shell_row *row,
		    struct shell_row *ret, bool *made, struct err *e)
{
	int n = store_run_one(s, &insert,
			      ARGS(TEXT(sandbox), TEXT(row->name), TEXT(row->cwd), TEXT(row->env),
				   TEXT(row->made_by), NUMBER(STORE_SHELLS_MAX)),
			      columns, ret, e);

	if (n < 0)
		return -1;
	*made = n > 0;
	if (n == 0 && store_shell_get(s, sandbox, row->name, ret, e) < 0)
		return e->code != ERR_NOT_FOUND
			       ? -1
			       : err_set(e, ERR_LIMIT, "a sandbox has at most %d shells",
					 STORE_SHELLS_MAX);
	return 0;
}

int store_shell_list(struct store *s, const char *sandbox,
		     void (*on_shell)(const struct shell_row *row, void *arg), void *arg,
		     struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	cleanup(free_ptr) struct shell_row *row = xcalloc(1, sizeof(*row));

	if (store_run(s, &list, ARGS(TEXT(sandbox)), &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		if (row_read(res, i, columns, row, e) < 0)
			return -1;
		on_shell(row, arg);
	}
	return 0;
}

int store_shell_remove(struct store *s, const char *sandbox, const char *name, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &remove_one, ARGS(TEXT(sandbox), TEXT(name)), &res, e);
}

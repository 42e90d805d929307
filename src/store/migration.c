#include "store/migration.h"

#include <string.h>

#include "lib/str.h"
#include "store/connection.h"
#include "store/store.h"

/*
 * These are scripts, not statements with values: each runs once in the life of
 * a database and is not prepared.
 */
static int script(struct store *s, const char *sql, PGresult **ret, struct err *e)
{
	cleanup(result_clear) PGresult *res = PQexec(s->conn, sql);
	ExecStatusType status = PQresultStatus(res);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		return connection_fail(s, res, e);
	if (ret)
		*ret = take_ptr(res);
	return 0;
}

/* Two daemons may make it at once; "if not exists" does not cover that race. */
static int make_table(struct store *s, struct err *e)
{
	static const char sql[] = "CREATE TABLE IF NOT EXISTS migration ("
				  "number integer PRIMARY KEY, name text NOT NULL, "
				  "applied_at timestamptz NOT NULL DEFAULT now())";
	static const char *const exists[] = { "42P07", "42710", "23505" };
	cleanup(result_clear) PGresult *res = PQexec(s->conn, sql);
	const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);

	s->counts.transactions++;
	if (PQresultStatus(res) == PGRES_COMMAND_OK)
		return 0;
	/* All three mean that the other one has committed it: table, type or catalog row. */
	for (size_t i = 0; state && i < array_len(exists); i++)
		if (strcmp(state, exists[i]) == 0)
			return 0;
	return connection_fail(s, res, e);
}

/* How many are in. The lock lasts until the end of the transaction. */
static int lock_and_count(struct store *s, uint64_t *ret, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (script(s,
		   "BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '10min'; "
		   "LOCK TABLE migration IN EXCLUSIVE MODE",
		   NULL, e) < 0)
		return -1;
	if (script(s, "SELECT coalesce(max(number), 0) FROM migration", &res, e) < 0)
		return -1;
	return str_u64(PQgetvalue(res, 0, 0), ret, e);
}

static int apply(struct store *s, size_t number, struct err *e)
{
	const struct migration *m = &migrations[number - 1];
	cleanup(buf_done) struct buf row = buf_make(1024);

	if (script(s, m->sql, NULL, e) < 0)
		return err_wrap(e, "migration %s", m->name);
	/* The name is our own file's, checked by tools/gen-sql. */
	buf_addf(&row, "INSERT INTO migration (number, name) VALUES (%zu, '%s')", number, m->name);
	return script(s, buf_str(&row), NULL, e);
}

/* One transaction: one migration, or none if `*done` turns out to be true. */
static int step(struct store *s, bool *done, struct err *e)
{
	uint64_t have;

	s->counts.transactions++;
	if (lock_and_count(s, &have, e) < 0)
		return -1;
	if (have > migration_count) {
		err_set(e, ERR_CONFLICT,
			"the database has schema %u, this program knows only up to %u",
			(unsigned)have, (unsigned)migration_count);
		return err_fix(e, "Install the berth version that made the database, or a newer "
				  "one; an older program must not write to it.");
	}
	*done = have == migration_count;
	if (!*done && apply(s, have + 1, e) < 0)
		return -1;
	return script(s, "COMMIT", NULL, e);
}

int store_migrate(struct store *s, struct err *e)
{
	bool done = false;

	if (connection_ready(s, e) < 0 || make_table(s, e) < 0)
		return -1;
	while (!done) {
		if (step(s, &done, e) == 0)
			continue;
		connection_drop(s); /* and with it the open transaction */
		return -1;
	}
	return 0;
}

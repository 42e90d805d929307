#include "store/migration.h"

#include <string.h>

#include "lib/buf.h"
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

/* Which are in, in their order. The lock lasts until the end of the transaction. */
static int lock_and_list(struct store *s, PGresult **ret, struct err *e)
{
	if (script(s,
		   "BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '10min'; "
		   "LOCK TABLE migration IN EXCLUSIVE MODE",
		   NULL, e) < 0)
		return -1;
	return script(s, "SELECT number FROM migration ORDER BY number", ret, e);
}

int schema_refuse(unsigned newer, struct err *e)
{
	err_set(e, ERR_BUSY, "the database has schema %u, this program knows only up to %u", newer,
		migrations[migration_count - 1].number);
	(void)err_reason(e, STORE_UNWRITABLE, 0);
	return err_fix(e, "Install the berth version that made the database, or a newer one, and "
			  "start it; an older program must not write to it.");
}

/* An integer column: nothing else can be in it. */
static uint64_t number_at(const PGresult *res, int row)
{
	struct err ignored;
	uint64_t n = 0;

	return str_u64(PQgetvalue(res, row, 0), &n, &ignored) < 0 ? 0 : n;
}

static bool is_in(const PGresult *res, unsigned number)
{
	for (int i = 0; i < PQntuples(res); i++)
		if (number_at(res, i) == number)
			return true;
	return false;
}

/* The first that is not in; NULL: all are. */
static const struct migration *missing(const PGresult *res)
{
	for (size_t i = 0; i < migration_count; i++)
		if (!is_in(res, migrations[i].number))
			return &migrations[i];
	return NULL;
}

static unsigned newest(const PGresult *res)
{
	int n = PQntuples(res);

	return n ? (unsigned)number_at(res, n - 1) : 0;
}

static int apply(struct store *s, const struct migration *m, struct err *e)
{
	cleanup(buf_done) struct buf row = buf_make(1024);

	if (script(s, m->sql, NULL, e) < 0)
		return err_wrap(e, "migration %s", m->name);
	/* The name is our own file's, checked by tools/gen-sql. */
	buf_addf(&row, "INSERT INTO migration (number, name) VALUES (%u, '%s')", m->number,
		 m->name);
	return script(s, buf_str(&row), NULL, e);
}

/* One transaction: one migration, or none if `*done` turns out to be true. */
static int step(struct store *s, bool *done, struct err *e)
{
	cleanup(result_clear) PGresult *have = NULL;
	unsigned known = migrations[migration_count - 1].number;
	const struct migration *next;

	s->counts.transactions++;
	if (lock_and_list(s, &have, e) < 0)
		return -1;
	if (newest(have) > known) {
		err_set(e, ERR_CONFLICT,
			"the database has schema %u, this program knows only up to %u",
			newest(have), known);
		return err_fix(e, "Install the berth version that made the database, or a newer "
				  "one; an older program must not write to it.");
	}
	next = missing(have);
	*done = !next;
	if (next && (apply(s, next, e) < 0 || script(s, "NOTIFY " MIGRATED, NULL, e) < 0))
		return -1;
	return script(s, "COMMIT", NULL, e);
}

int schema_look(struct store *s, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	const char *state;

	s->newer = 0;
	if (script(s, "LISTEN " MIGRATED, NULL, e) < 0)
		return -1;
	res = PQexec(s->conn, "SELECT coalesce(max(number), 0) FROM migration");
	state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
	if (state && strcmp(state, "42P01") == 0)
		return 0; /* no such table: an empty database */
	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		return connection_fail(s, res, e);
	if (newest(res) <= migrations[migration_count - 1].number)
		return 0;
	s->newer = newest(res);
	return s->renews ? 0 : script(s, "SET default_transaction_read_only = on", NULL, e);
}

int store_migrate(struct store *s, struct err *e)
{
	bool done = false;

	if (connection_ready(s, e) < 0)
		return -1;
	if (s->newer) {
		schema_refuse(s->newer, e);
		e->code = ERR_CONFLICT; /* it does not pass by waiting */
		return -1;
	}
	if (make_table(s, e) < 0)
		return -1;
	while (!done) {
		if (step(s, &done, e) == 0)
			continue;
		connection_drop(s); /* and with it the open transaction */
		return -1;
	}
	connection_drop(s); /* it was told of its own migrations, too */
	return 0;
}

#include "store/incident.h"

#include "store/rows.h"

struct incident_row {
	uint64_t id;
	struct incident is;
};

/* clang-format off */
#define ROW(kind, member) \
	{ #member, kind, offsetof(struct incident_row, is) + offsetof(struct incident, member), \
	  sizeof(((struct incident *)0)->member), NULL }

static const struct column columns[] = {
	COLUMN(COLUMN_U64, incident_row, id),
	ROW(COLUMN_STR, kind),
	ROW(COLUMN_STR, source),
	ROW(COLUMN_ID_OR_NONE, sandbox),
	ROW(COLUMN_STR, detail),
	ROW(COLUMN_U64, first_ms),
	ROW(COLUMN_U64, last_ms),
	ROW(COLUMN_U64, count),
	COLUMNS_END
};

/* The hour is the database's: hosts whose clocks differ write one row. */
static const struct statement add = { "incident-add",
	"INSERT INTO incident AS i (hour, kind, source, sandbox_id, detail, first_at, last_at, "
	"count) VALUES (date_trunc('hour', now()), $1, $2, $3, $4, "
	"to_timestamp($5::bigint / 1000.0), to_timestamp($6::bigint / 1000.0), $7::bigint) "
	"ON CONFLICT (hour, kind, source, sandbox_id) DO UPDATE SET count = i.count + $7::bigint, "
	"last_at = greatest(i.last_at, excluded.last_at), detail = excluded.detail" };
static const struct statement trim = { "incident-trim",
	"DELETE FROM incident WHERE id <= (SELECT id FROM incident ORDER BY id DESC "
	"OFFSET $1::bigint LIMIT 1)" };
static const struct statement list = { "incident-list",
	"SELECT id, kind, source, sandbox_id AS sandbox, detail, " SQL_MS("first_at")
	" AS first_ms, " SQL_MS("last_at") " AS last_ms, count FROM incident "
	"WHERE $1::bigint = 0 OR id < $1::bigint ORDER BY id DESC LIMIT $2::bigint" };
/* clang-format on */

int store_incident_add(struct store *s, const struct incident *one, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &add,
			 ARGS(TEXT(one->kind), TEXT(one->source), TEXT(one->sandbox),
			      TEXT(one->detail), NUMBER(one->first_ms), NUMBER(one->last_ms),
			      NUMBER(one->count)),
			 &res, e);
}

int store_incident_trim(struct store *s, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &trim, ARGS(NUMBER(STORE_INCIDENTS_MAX)), &res, e);
}

int store_incident_list(struct store *s, uint64_t before, incident_fn *on_row, void *arg,
			struct err *e)
{
	struct rows rows = { .columns = columns, .what = "incident", .after = 0, .limit = 1 };
	struct incident_row got;

	if (rows_open(&rows, s, &list, ARGS(NUMBER(before), NUMBER(STORE_INCIDENT_PAGE)), e) < 0)
		return -1;
	while (rows_next(&rows, &got, sizeof(got), e))
		on_row(got.id, &got.is, arg);
	return rows_close(&rows);
}

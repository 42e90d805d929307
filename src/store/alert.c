#include "store/alert.h"

#include "store/rows.h"

/* clang-format off */
static const struct column columns[] = {
	COLUMN(COLUMN_U64, alert, id),
	COLUMN(COLUMN_STR, alert, kind),
	COLUMN(COLUMN_ID_OR_NONE, alert, sandbox),
	COLUMN(COLUMN_STR, alert, subject),
	COLUMN(COLUMN_STR, alert, owner),
	COLUMN(COLUMN_STR, alert, host),
	COLUMN(COLUMN_STR, alert, message),
	COLUMN(COLUMN_U64, alert, raised_ms),
	COLUMN(COLUMN_U64, alert, ended_ms),
	COLUMNS_END
};

static const struct statement raise_it = { "alert-raise",
	"INSERT INTO alert (kind, sandbox_id, subject, owner, host, message) "
	"VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (sandbox_id, kind, subject) "
	"WHERE ended_at IS NULL DO UPDATE SET message = excluded.message" };
static const struct statement end_it = { "alert-end",
	"UPDATE alert SET ended_at = now() WHERE sandbox_id = $1 AND kind = $2 AND subject = $3 "
	"AND ended_at IS NULL" };
static const struct statement list = { "alert-list",
	"SELECT id, kind, sandbox_id AS sandbox, subject, owner, host, message, "
	SQL_MS("raised_at") " AS raised_ms, coalesce(" SQL_MS("ended_at") ", 0) AS ended_ms "
	"FROM alert WHERE ($1::text IS NULL OR owner = $1) AND ($2::bigint = 0 OR id < $2::bigint) "
	"AND (ended_at IS NULL OR $4::int = 1) ORDER BY id DESC LIMIT $3::bigint" };
/* clang-format on */

int store_alert_raise(struct store *s, const struct alert *a, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &raise_it,
			 ARGS(TEXT(a->kind), TEXT(a->sandbox), TEXT(a->subject), TEXT(a->owner),
			      TEXT(a->host), TEXT(a->message)),
			 &res, e);
}

int store_alert_end(struct store *s, const char *sandbox, const char *kind, const char *subject,
		    struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &end_it, ARGS(TEXT(sandbox), TEXT(kind), TEXT(subject)), &res, e);
}

int store_alert_list(struct store *s, const struct alert_page *page, alert_fn *on_row, void *arg,
		     struct err *e)
{
	struct rows rows = { .columns = columns, .what = "alert", .after = 1, .limit = 2 };
	struct alert got;

	if (page->limit == 0 || page->limit > STORE_ALERTS_MAX)
		return err_set(e, ERR_INVALID, "limit must be 1 to %d", STORE_ALERTS_MAX);
	if (rows_open(&rows, s, &list,
		      ARGS(TEXT(page->owner), NUMBER(page->before), NUMBER(page->limit),
			   NUMBER(page->ended)),
		      e) < 0)
		return -1;
	while (rows_next(&rows, &got, sizeof(got), e))
		on_row(&got, arg);
	return rows_close(&rows);
}

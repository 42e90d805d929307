#include "store/sandbox-event.h"

#include "store/row.h"

/* clang-format off */
static const struct column columns[] = {
	COLUMN(COLUMN_U64, sandbox_happening, seq),
	COLUMN(COLUMN_U64, sandbox_happening, at_ms),
	COLUMN(COLUMN_STR, sandbox_happening, event),
	COLUMN(COLUMN_STR, sandbox_happening, from_state),
	COLUMN(COLUMN_STR, sandbox_happening, to_state),
	COLUMN(COLUMN_STR, sandbox_happening, reason),
	COLUMN(COLUMN_U64, sandbox_happening, attempt),
	COLUMNS_END
};

static const struct statement events = { "sandbox-events",
	"SELECT seq, " SQL_MS("at") " AS at_ms, event, from_state, to_state, reason, attempt "
	"FROM sandbox_event WHERE sandbox_id = $1 AND seq > $2::bigint "
	"ORDER BY seq LIMIT $3::bigint" };
/* clang-format on */

int store_sandbox_events(struct store *s, const char *id, uint64_t after,
			 sandbox_happening_fn *on_row, void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &events, ARGS(TEXT(id), NUMBER(after), NUMBER(STORE_EVENTS_MAX)), &res,
		      e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct sandbox_happening got = { 0 };

		if (row_read(res, i, columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

#include "store/check.h"

#include "store/row.h"

/* clang-format off */
static const struct column columns[] = {
	COLUMN(COLUMN_STR, check_row, kind),
	COLUMN(COLUMN_STR, check_row, id),
	COLUMN(COLUMN_STR, check_row, detail),
	COLUMNS_END
};

#define SAYS_ABSENT(part) "receipt LIKE '%\"" part "\":\"absent\"%'"
#define MISSING(id) \
	"NOT EXISTS (SELECT FROM sandbox x WHERE x.id = " id ") AND " \
	"NOT EXISTS (SELECT FROM tombstone x WHERE x.id = " id ")"
static const struct statement check = { "check",
	"SELECT 'overdue' AS kind, id, state || ', due ' || deadline_at::text AS detail "
	"FROM sandbox WHERE host = $1 "
	"AND deadline_at < now() - $2::bigint * interval '1 millisecond' "
	"UNION ALL "
	"SELECT 'no_deadline', id, state FROM sandbox WHERE host = $1 AND deadline_at IS NULL "
	"AND state IN ('creating', 'falling_asleep', 'waking', 'deleting') "
	"UNION ALL "
	"SELECT 'unproven', id, 'the receipt: ' || left(receipt, 150) FROM tombstone "
	"WHERE host = $1 AND NOT (" SAYS_ABSENT("process") " AND " SAYS_ABSENT("cgroup") " AND "
	SAYS_ABSENT("disk") " AND " SAYS_ABSENT("runtime") " AND "
	"(" SAYS_ABSENT("link") " OR receipt NOT LIKE '%\"link\"%')) " /* there were none once */
	"AND receipt NOT LIKE '%\"removed_by\"%' " /* an operator took it on himself */
	"UNION ALL "
	"SELECT 'twice', t.id, 'a row in state ' || s.state "
	"FROM tombstone t JOIN sandbox s USING (id) "
	"UNION ALL "
	"SELECT DISTINCT 'forgotten', e.sandbox_id, 'only its log is left' FROM sandbox_event e "
	"WHERE " MISSING("e.sandbox_id") " "
	"UNION ALL "
	"SELECT 'forgotten', i.sandbox_id, 'only the key that made it is left' FROM idempotency i "
	"WHERE i.request = 'POST /v1/sandboxes' AND " MISSING("i.sandbox_id") " "
	"LIMIT 1000" };
/* clang-format on */

int store_check(struct store *s, const char *host, uint64_t late_ms, check_row_fn *on_row,
		void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &check, ARGS(TEXT(host), NUMBER(late_ms)), &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct check_row got = { 0 };

		if (row_read(res, i, columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

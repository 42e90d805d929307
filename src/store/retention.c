#include "store/retention.h"

#include "lib/str.h"
#include "store/row.h"

/* clang-format off */
/* In small batches, never waiting for a row of the table that is in use. */
#define REMOVE(name, table, column, condition) { "retention-" name, \
	"DELETE FROM " table " WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM " table " t " \
	"WHERE t." column " < now() - $1::bigint * interval '1 millisecond' AND " condition \
	" LIMIT $2::bigint FOR UPDATE OF t SKIP LOCKED))" }
#define NO_SANDBOX "NOT EXISTS (SELECT FROM sandbox s WHERE s.id = t.sandbox_id)"

static const struct statement removals[RETENTION_COUNT] = {
	[RETENTION_USAGE]	= REMOVE("usage", "usage", "seen_at", NO_SANDBOX),
	[RETENTION_NETWORK]	= REMOVE("network", "sandbox_network", "changed_at", NO_SANDBOX
		" AND NOT EXISTS (SELECT FROM usage u WHERE u.sandbox_id = t.sandbox_id)"),
	/* Of one that lives on, what is old; of one that is not seen gone, everything is kept. */
	[RETENTION_EVENTS]	= REMOVE("events", "sandbox_event", "at",
		"NOT EXISTS (SELECT FROM sandbox s WHERE s.id = t.sandbox_id "
		"AND s.state IN ('deleting', 'failed'))"),
	[RETENTION_ALERTS]	= REMOVE("alerts", "alert", "ended_at", "t.ended_at IS NOT NULL"),
	[RETENTION_SECURITY]	= REMOVE("security", "security_event", "at", NO_SANDBOX),
	[RETENTION_INCIDENTS]	= REMOVE("incidents", "incident", "last_at", "true"),
	[RETENTION_IDEMPOTENCY]	= REMOVE("idempotency", "idempotency", "created_at",
		"NOT EXISTS (SELECT FROM sandbox s WHERE s.id = t.sandbox_id "
		"AND s.state IN ('creating', 'deleting'))"),
	[RETENTION_SESSIONS]	= REMOVE("sessions", "agent_session", "created_at",
		"NOT EXISTS (SELECT FROM sandbox s WHERE s.identity_key = t.identity_key "
		"AND s.identity_key <> '' AND s.owner = t.owner)"),
	[RETENTION_CAPS]	= REMOVE("caps", "cap", "locked_at",
		"NOT EXISTS (SELECT FROM sandbox s WHERE s.cap_subject = t.subject "
		"AND s.cap_subject <> '')"),
	[RETENTION_TOMBSTONES]	= REMOVE("tombstones", "tombstone", "deleted_at",
		"NOT EXISTS (SELECT FROM host h WHERE h.id = t.host "
		"AND (h.lost_at IS NOT NULL OR h.removed_at IS NOT NULL))"),
};

/* Until the end of the transaction; any number that nothing else of berth locks. */
static const struct statement only_one = { "retention-lock",
	"SELECT pg_try_advisory_xact_lock(762093841) AS got" };
/* clang-format on */

struct lock {
	bool got;
};

static const struct column lock_columns[] = {
	COLUMN(COLUMN_BOOL, lock, got),
	COLUMNS_END
};

static int remove_batch(struct store *s, enum retention r, uint64_t age_ms, uint64_t *ret,
			struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &removals[r], ARGS(NUMBER(age_ms), NUMBER(STORE_RETENTION_BATCH)), &res,
		      e) < 0)
		return -1;
	return str_u64(PQcmdTuples(res), ret, e);
}

static int remove_all(struct store *s, const struct retention_ages *ages, uint64_t *removed,
		      bool *more, struct err *e)
{
	for (int r = 0; r < RETENTION_COUNT; r++) {
		uint64_t n = 0;

		if (ages->ms[r] == 0)
			continue;
		if (remove_batch(s, (enum retention)r, ages->ms[r], &n, e) < 0)
			return -1;
		*removed += n;
		*more |= n == STORE_RETENTION_BATCH;
	}
	return 0;
}

int store_retention_run(struct store *s, const struct retention_ages *ages, uint64_t *removed,
			bool *more, struct err *e)
{
	struct lock lock = { 0 };

	if (store_begin(s, e) < 0)
		return -1;
	if (store_run_one(s, &only_one, NO_ARGS, lock_columns, &lock, e) < 0 ||
	    (lock.got && remove_all(s, ages, removed, more, e) < 0)) {
		store_rollback(s);
		return -1;
	}
	return store_commit(s, e);
}

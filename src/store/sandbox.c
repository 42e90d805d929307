#include "store/sandbox.h"

#include <string.h>

#include "lib/str.h"
#include "store/sandbox-row.h"

/* clang-format off */
#define TOMBSTONE_COLUMNS \
	"id, owner, host, generation, " SQL_MS("deleted_at") " AS deleted_ms, receipt"
#define OF_OWNER "($2::text IS NULL OR owner = $2)"
/* clang-format on */

static const struct column tombstone_columns[] = {
	COLUMN(COLUMN_ID, tombstone, id),
	COLUMN(COLUMN_STR, tombstone, owner),
	COLUMN(COLUMN_STR, tombstone, host),
	COLUMN(COLUMN_U64, tombstone, generation),
	COLUMN(COLUMN_U64, tombstone, deleted_ms),
	COLUMN(COLUMN_STR, tombstone, receipt),
	COLUMNS_END
};

/* clang-format off */
/* One statement sees one moment: the row and the tombstone cannot both be missed. */
static const struct statement get = { "sandbox-get",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE id = $1 AND " OF_OWNER
	" UNION ALL "
	"SELECT " GONE_COLUMNS " FROM tombstone WHERE id = $1 AND " OF_OWNER };
#define MOVE \
	"WITH moved AS (" \
	"UPDATE sandbox SET state = $5, reason = $6, version = version + 1, last_used_at = " \
	"CASE WHEN $5 = 'ready' AND state <> 'ready' THEN now() ELSE last_used_at END, " \
	"busy_since = CASE WHEN $5 = 'ready' THEN busy_since END, deadline_at = " \
	"CASE WHEN $7::bigint = 0 THEN NULL ELSE " SQL_AFTER("$7") " END, " \
	"failed_at = CASE WHEN $5 = 'failed' AND state <> 'failed' THEN now() " \
	"ELSE failed_at END, " \
	"failed_why = CASE WHEN $5 = 'failed' AND state <> 'failed' THEN $6 ELSE failed_why END, " \
	"files_kept = files_kept AND ($5 <> 'failed' OR " \
	"(state <> 'creating' AND $8 <> 'removed')), " \
	"stop_state = $9, stop_attempt = $10, stop_attempts = $11, stop_rechecks = $12, " \
	"quarantined_at = CASE $9 WHEN 'none' THEN NULL " \
	"WHEN 'quarantined' THEN coalesce(quarantined_at, now()) ELSE quarantined_at END, " \
	"guest_version = CASE WHEN $14::bigint = 0 THEN guest_version ELSE $14 END, " \
	"guest_compared = CASE WHEN $14::bigint = 0 THEN guest_compared ELSE $14 END " \
	"WHERE id = $1 AND generation = $2 AND state = $3 AND ($4::bigint = 0 OR version = $4) " \
	"RETURNING *)" \
	TELL("version", "$8", "$3", "$5", "$6", "$13::bigint", "moved")
static const struct statement move_it = { "sandbox-move",
	MOVE "SELECT " SANDBOX_COLUMNS " FROM moved" };
static const struct statement move_and_answer = { "sandbox-move-and-answer",
	MOVE ", answered AS (UPDATE idempotency i SET status = $17, response = $18 FROM moved "
	"WHERE i.owner = $15 AND i.key = $16 AND i.sandbox_id = moved.id AND i.status IS NULL) "
	"SELECT " SANDBOX_COLUMNS " FROM moved" };
/* The second half answers who comes again: it does not see what the first one does. */
static const struct statement erase = { "sandbox-erase",
	"WITH gone AS (DELETE FROM sandbox WHERE id = $1 AND generation = $2 "
	"AND state = 'deleting' AND stop_attempt = $4 RETURNING *)"
	TELL("version + 1", "'removed'", "'deleting'", "'gone'", "''", "stop_attempt", "gone") ", "
	FREE_NETWORK("gone") ", " END_ALERTS("gone") ", "
	"made AS (INSERT INTO tombstone (id, owner, host, generation, receipt) "
	"SELECT id, owner, host, generation, $3 FROM gone RETURNING *) "
	"SELECT " TOMBSTONE_COLUMNS " FROM made UNION ALL "
	"SELECT " TOMBSTONE_COLUMNS " FROM tombstone WHERE id = $1" };
/*
 * What is not known of it is the least that may stand there. Its log goes on behind what is left
 * of it.
 */
static const struct statement abandon = { "sandbox-abandon",
	"WITH made AS (INSERT INTO sandbox (id, owner, image, image_digest, runtime, host, "
	"generation, state, memory_mb, cpu_milli, pids, disk_mb, version, deadline_at, reason) "
	"SELECT $1, $2, i.name, '', 'unknown', $3, $4::bigint, 'deleting', "
	"1, 1, 1, 1, (SELECT coalesce(max(seq), 0) + 1 FROM sandbox_event WHERE sandbox_id = $1), "
	SQL_AFTER("$6") ", $5 FROM (SELECT name FROM image ORDER BY name LIMIT 1) i "
	"WHERE NOT EXISTS (SELECT FROM tombstone WHERE id = $1) "
	"ON CONFLICT (id) DO NOTHING RETURNING *)"
	TELL("version", "'abandon'", "''", "state", "reason", "0", "made")
	"SELECT " SANDBOX_COLUMNS " FROM made" };
static const struct statement tombstone = { "tombstone-get",
	"SELECT " TOMBSTONE_COLUMNS " FROM tombstone WHERE id = $1 AND " OF_OWNER };
static const struct statement of_host = { "sandboxes-of-host",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE host = $1 AND id > $2 "
	"ORDER BY id LIMIT $3::bigint" };
static const struct statement count_due = { "sandboxes-overdue",
	"SELECT count(*) AS count FROM sandbox WHERE host = $1 AND deadline_at <= now()" };
static const struct statement due_now = { "sandboxes-due",
	"WITH due AS (SELECT id FROM sandbox WHERE host = $1 AND deadline_at <= now() "
	"ORDER BY deadline_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED) "
	"UPDATE sandbox SET deadline_at = CASE WHEN state = 'deleting' THEN deadline_at "
	"ELSE " SQL_AFTER("$3") " END WHERE id IN (SELECT id FROM due) "
	"RETURNING " SANDBOX_COLUMNS };
static const struct statement put_off = { "sandbox-put-off",
	"UPDATE sandbox SET deadline_at = " SQL_AFTER("$2") " WHERE id = $1" };
/* clang-format on */

static int not_found(const char *id, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no sandbox %.60s", id);
}

int store_sandbox_get(struct store *s, const char *owner, const char *id, struct sandbox *ret,
		      struct err *e)
{
	struct sandbox got = { 0 };
	int n = store_run_one(s, &get, ARGS(TEXT(id), TEXT(owner)), sandbox_columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return not_found(id, e);
	*ret = got;
	return 0;
}

/* Nothing is done for them: they must not fill every page of what is due. */
static int put_off_damaged(struct store *s, const PGresult *res, uint64_t ms, struct err *e)
{
	for (int i = 0; i < PQntuples(res); i++) {
		cleanup(result_clear) PGresult *done = NULL;
		struct sandbox got = { 0 };
		struct err ignored;

		if (row_read(res, i, sandbox_columns, &got, &ignored) < 0 &&
		    store_run(s, &put_off, ARGS(TEXT(PQgetvalue(res, i, 0)), NUMBER(ms)), &done,
			      e) < 0)
			return -1;
	}
	return 0;
}

int sandbox_limit_check(uint32_t limit, struct err *e)
{
	if (limit == 0 || limit > STORE_LIST_MAX)
		return err_set(e, ERR_INVALID, "limit must be 1 to %d, not %u", STORE_LIST_MAX,
			       limit);
	return 0;
}

/* What fits, and only whole characters: a fact is not refused for the words about it. */
static void reason_cut(char out[SANDBOX_REASON_SIZE], const char *reason)
{
	size_t len = strnlen(reason, SANDBOX_REASON_SIZE - 1);

	len = utf8_valid_prefix(reason, len);
	memcpy(out, reason, len);
	out[len] = '\0';
}

int store_sandbox_move(struct store *s, const struct sandbox_move *move, struct sandbox *ret,
		       struct err *e)
{
	static const struct stop none = { .state = STOP_NONE };
	const struct stop *stop = move->stop ? move->stop : &none;
	const struct idempotency_answer *answer = move->answer;
	char reason[SANDBOX_REASON_SIZE];
	struct args args = ARGS(TEXT(move->id), NUMBER(move->generation),
				TEXT(sandbox_state_name(move->from)), NUMBER(move->version),
				TEXT(sandbox_state_name(move->to)), TEXT(reason),
				NUMBER(move->deadline_ms), TEXT(move->event ? move->event : ""),
				TEXT(stop_state_name(stop->state)), NUMBER(stop->attempt),
				NUMBER(stop->attempts), NUMBER(stop->rechecks),
				NUMBER(move->attempt), NUMBER(move->guest),
				TEXT(answer ? answer->use->owner : NULL),
				TEXT(answer ? answer->use->key : NULL),
				NUMBER(answer ? answer->status : 0),
				TEXT(answer ? answer->response : NULL));
	struct sandbox got = { 0 };
	int n;

	reason_cut(reason, move->reason ? move->reason : "");
	args.len -= answer ? 0 : 4;
	n = store_run_one(s, answer ? &move_and_answer : &move_it, args, sandbox_columns, &got, e);
	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_CONFLICT, "sandbox %.60s has changed meanwhile: it is not %s "
						"as it was",
			       move->id, sandbox_state_name(move->from));
	*ret = got;
	return 0;
}

int store_sandbox_abandon(struct store *s, const struct sandbox_orphan *orphan,
			  struct sandbox *ret, struct err *e)
{
	char reason[SANDBOX_REASON_SIZE];
	struct sandbox got = { 0 };
	int n;

	reason_cut(reason, orphan->reason);
	n = store_run_one(s, &abandon,
			  ARGS(TEXT(orphan->id), TEXT(orphan->owner), TEXT(orphan->host),
			       NUMBER(orphan->generation), TEXT(reason),
			       NUMBER(orphan->deadline_ms)),
			  sandbox_columns, &got, e);
	if (n < 0)
		return -1;
	if (n == 0) {
		err_set(e, ERR_CONFLICT, "%.60s has a record by now, or there is no image at all",
			orphan->id);
		return err_fix(e, "A record needs the name of an image: 'berth image import' "
				  "gives one to a database that has none.");
	}
	*ret = got;
	return 0;
}

int store_tombstone_get(struct store *s, const char *owner, const char *id,
			struct tombstone *ret, struct err *e)
{
	struct tombstone got = { 0 };
	int n = store_run_one(s, &tombstone, ARGS(TEXT(id), TEXT(owner)), tombstone_columns, &got,
			      e);

	if (n < 0)
		return -1;
	if (n == 0)
		return not_found(id, e);
	*ret = got;
	return 0;
}

/* Nothing was erased by us and no tombstone was there when we looked. */
static int not_erased(struct store *s, const char *id, struct tombstone *ret, struct err *e)
{
	struct sandbox sb = { 0 };

	if (store_sandbox_get(s, NULL, id, &sb, e) < 0)
		return -1;
	if (sb.state == SANDBOX_GONE) /* another one did it in this very moment */
		return store_tombstone_get(s, NULL, id, ret, e);
	return err_set(e, ERR_CONFLICT, "sandbox %.60s is %s, generation %llu: not to be erased "
					"by an observation of before",
		       id, sandbox_state_name(sb.state), (unsigned long long)sb.generation);
}

int store_sandbox_erase(struct store *s, const struct sandbox_end *end, struct tombstone *ret,
			struct err *e)
{
	struct tombstone got = { 0 };
	int n;

	if (strlen(end->receipt) > STORE_RECEIPT_MAX)
		return err_set(e, ERR_INVALID, "a receipt has at most %d bytes", STORE_RECEIPT_MAX);
	n = store_run_one(s, &erase,
			  ARGS(TEXT(end->id), NUMBER(end->generation), TEXT(end->receipt),
			       NUMBER(end->attempt)),
			  tombstone_columns, &got, e);
	if (n < 0)
		return -1;
	if (n == 0)
		return not_erased(s, end->id, ret, e);
	*ret = got;
	return 0;
}

int store_sandboxes_of_host(struct store *s, const char *host, sandbox_fn *on_row, void *arg,
			    struct err *e)
{
	struct rows rows = { sandbox_columns, "sandbox", .after = 1, .limit = 2, .all = true };
	struct sandbox got;

	if (rows_open(&rows, s, &of_host, ARGS(TEXT(host), TEXT(""), NUMBER(STORE_SWEEP_PAGE)),
		      e) < 0)
		return -1;
	while (rows_next(&rows, &got, sizeof(got), e))
		on_row(&got, arg);
	return rows_close(&rows);
}

struct count_row {
	uint64_t count;
};

int store_sandboxes_overdue(struct store *s, const char *host, uint64_t *ret, struct err *e)
{
	static const struct column columns[] = {
		COLUMN(COLUMN_U64, count_row, count),
		COLUMNS_END,
	};
	struct count_row row = { 0 };

	if (store_run_one(s, &count_due, ARGS(TEXT(host)), columns, &row, e) < 0)
		return -1;
	*ret = row.count;
	return 0;
}

int store_sandboxes_due(struct store *s, const struct sandbox_due *due, sandbox_fn *on_row,
			void *arg, struct err *e)
{
	struct rows rows = { sandbox_columns, "sandbox", .after = ROWS_NO_PAGES };
	struct sandbox got;
	struct err failed;

	if (sandbox_limit_check(due->limit, e) < 0 ||
	    rows_open(&rows, s, &due_now,
		      ARGS(TEXT(due->host), NUMBER(due->limit), NUMBER(due->again_ms)), e) < 0)
		return -1;
	while (rows_next(&rows, &got, sizeof(got), e))
		on_row(&got, arg);
	if (rows.bad > 0 && put_off_damaged(s, rows.res, due->again_ms, &failed) < 0) {
		*e = failed;
		rows.bad = -1;
	}
	return rows_close(&rows);
}

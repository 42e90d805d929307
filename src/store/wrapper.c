#include "store/wrapper.h"

#include <string.h>

#include "lib/str.h"
#include "store/row.h"

/* clang-format off */
#define WRAPPER_COLUMNS \
	"w.sandbox_id AS sandbox, w.name, w.version, w.state AS \"lease.state\", " \
	"w.next_generation AS \"lease.next_generation\", w.instance AS \"lease.instance.id\", " \
	"w.generation AS \"lease.instance.generation\", " \
	"coalesce(" SQL_MS("w.deadline_at") ", 0) AS \"lease.deadline_ms\", " \
	"coalesce(" SQL_MS("w.keep_warm_at") ", 0) AS \"lease.keep_warm_ms\", " \
	"w.session_wide AS \"lease.session_wide\", w.reason AS \"lease.reason\", " \
	"w.reason AS \"lease.stop.reason\", " \
	"coalesce(" SQL_MS("w.requested_at") ", 0) AS \"lease.stop.requested_ms\", " \
	"w.stop_attempt AS \"lease.stop.attempt\", w.stop_attempts AS \"lease.stop.attempts\", " \
	"w.stop_rechecks AS \"lease.stop.rechecks\", w.last_error AS \"lease.stop.last_error\", " \
	"w.what, w.receipt, w.host AS \"boot.host\", w.boot_id AS \"boot.boot_id\", " \
	SQL_MS("w.created_at") " AS created_ms, " \
	SQL_MS("now()") " AS read_ms"
#define SQL_AT(n) \
	"CASE WHEN " n "::bigint > 0 THEN to_timestamp(" n "::bigint / 1000.0) END"

static bool read_state(const char *text, void *at)
{
	*(enum lease_state *)at = lease_state_by_name(text);
	return strcmp(lease_state_name(*(enum lease_state *)at), text) == 0;
}

static bool read_reason(const char *text, void *at)
{
	*(enum lease_reason *)at = lease_reason_by_name(text);
	return true;
}

static bool read_count(const char *text, void *at)
{
	struct err ignored;
	uint64_t n;

	if (str_u64(text, &n, &ignored) < 0 || n > UINT32_MAX)
		return false;
	*(unsigned *)at = (unsigned)n;
	return true;
}

static const struct column columns[] = {
	COLUMN(COLUMN_STR, wrapper, sandbox),
	COLUMN(COLUMN_STR, wrapper, name),
	COLUMN(COLUMN_U64, wrapper, version),
	COLUMN(COLUMN_WORD, wrapper, lease.state, .read = read_state),
	COLUMN(COLUMN_U64, wrapper, lease.next_generation),
	COLUMN(COLUMN_STR, wrapper, lease.instance.id),
	COLUMN(COLUMN_U64, wrapper, lease.instance.generation),
	COLUMN(COLUMN_U64, wrapper, lease.deadline_ms),
	COLUMN(COLUMN_U64, wrapper, lease.keep_warm_ms),
	COLUMN(COLUMN_BOOL, wrapper, lease.session_wide),
	COLUMN(COLUMN_WORD, wrapper, lease.reason, .read = read_reason),
	COLUMN(COLUMN_STR, wrapper, lease.stop.reason),
	COLUMN(COLUMN_U64, wrapper, lease.stop.requested_ms),
	COLUMN(COLUMN_U64, wrapper, lease.stop.attempt),
	COLUMN(COLUMN_WORD, wrapper, lease.stop.attempts, .read = read_count),
	COLUMN(COLUMN_WORD, wrapper, lease.stop.rechecks, .read = read_count),
	COLUMN(COLUMN_STR, wrapper, lease.stop.last_error),
	COLUMN(COLUMN_STR, wrapper, what),
	COLUMN(COLUMN_STR, wrapper, receipt),
	COLUMN(COLUMN_STR, wrapper, boot.host),
	COLUMN(COLUMN_STR, wrapper, boot.boot_id),
	COLUMN(COLUMN_U64, wrapper, created_ms),
	COLUMN(COLUMN_U64, wrapper, read_ms),
	COLUMNS_END
};

static const struct statement insert = { "wrapper-insert",
	"INSERT INTO wrapper (sandbox_id, name) SELECT id, $2 FROM sandbox WHERE id = $1 "
	"AND (SELECT count(*) FROM wrapper WHERE sandbox_id = $1) < $3::bigint "
	"ON CONFLICT DO NOTHING" };
static const struct statement get = { "wrapper-get",
	"SELECT " WRAPPER_COLUMNS " FROM wrapper w WHERE w.sandbox_id = $1 AND w.name = $2" };
static const struct statement move_it = { "wrapper-move",
	"UPDATE wrapper w SET version = version + 1, state = $4, next_generation = $5, "
	"instance = $6, generation = $7, deadline_at = " SQL_AT("$8") ", "
	"keep_warm_at = " SQL_AT("$9") ", session_wide = $10::boolean, reason = $11, "
	"requested_at = " SQL_AT("$12") ", stop_attempt = $13, stop_attempts = $14, "
	"stop_rechecks = $15, last_error = $16, what = $17, receipt = $18, "
	"host = $19, boot_id = $20 "
	"WHERE w.sandbox_id = $1 AND w.name = $2 AND w.version = $3::bigint "
	"RETURNING " WRAPPER_COLUMNS };
static const struct statement list = { "wrapper-list",
	"SELECT " WRAPPER_COLUMNS " FROM wrapper w WHERE w.sandbox_id = $1 ORDER BY w.name" };
static const struct statement due_now = { "wrappers-due",
	"SELECT " WRAPPER_COLUMNS " FROM wrapper w JOIN sandbox s ON s.id = w.sandbox_id "
	"WHERE w.deadline_at IS NOT NULL AND s.host = $1 AND s.state <> 'deleting' AND "
	"(w.deadline_at <= now() OR ($3::boolean AND (w.state = 'stopping' OR "
	"(w.host = $1 AND w.boot_id <> '' AND $4 <> '' AND w.boot_id <> $4)))) "
	"ORDER BY w.deadline_at LIMIT $2::bigint" };
/* clang-format on */

/* One deadline is stored; whose it is follows from the state. */
static void complete(struct wrapper *w)
{
	static const enum stop_state ladder[LEASE_STATE_COUNT] = {
		[LEASE_QUARANTINED] = STOP_QUARANTINED,
		[LEASE_NONE] = STOP_NONE,
		[LEASE_STARTING] = STOP_NONE,
		[LEASE_READY] = STOP_NONE,
		[LEASE_BUSY] = STOP_NONE,
		[LEASE_WARM] = STOP_NONE,
		[LEASE_STOP_NEEDED] = STOP_NEEDED,
		[LEASE_STOPPING] = STOP_STOPPING,
	};
	struct stop *stop = &w->lease.stop;

	stop->state = ladder[w->lease.state];
	if (stop->state == STOP_NONE)
		return;
	stop->next_ms = stop->deadline_ms = w->lease.deadline_ms;
	w->lease.deadline_ms = 0;
}

/*
 * A lease of which anything cannot be read is quarantined, never none: what it was
 * about may be alive. Only without its version it cannot even be written over.
 */
static int read_lease(const PGresult *res, int row, struct wrapper *ret, struct err *e)
{
	struct wrapper got = { 0 };
	int bad = row_read_some(res, row, columns, &got, e);

	if (bad < 0 || got.version == 0)
		return -1;
	if (bad) {
		got.unreadable = true;
		got.lease.state = LEASE_QUARANTINED;
		got.lease.session_wide = true;
		(void)!str_copy_bytes(got.lease.stop.last_error, STOP_ERROR_SIZE, e->msg,
				      strnlen(e->msg, STOP_ERROR_SIZE - 1));
		if (got.lease.next_generation <= got.lease.instance.generation)
			got.lease.next_generation = got.lease.instance.generation + 1;
	}
	complete(&got);
	*ret = got;
	return 0;
}

static int each(struct store *s, const struct statement *st, struct args args, wrapper_fn *on_row,
		void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, st, args, &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct wrapper got;

		if (read_lease(res, i, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

static int not_there(const char *sandbox, const char *name, struct err *e)
{
	err_set(e, ERR_NOT_FOUND, "sandbox %s has no wrapper %.20s", sandbox, name);
	return err_fix(e, "GET /v1/sandboxes/%s/wrappers lists those it has.", sandbox);
}

int store_wrapper_get(struct store *s, const char *sandbox, const char *name,
		      struct wrapper *ret, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &get, ARGS(TEXT(sandbox), TEXT(name)), &res, e) < 0)
		return -1;
	if (PQntuples(res) == 0)
		return not_there(sandbox, name, e);
	return read_lease(res, 0, ret, e);
}

int store_wrapper_open(struct store *s, const char *sandbox, const char *name,
		       struct wrapper *ret, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_wrapper_get(s, sandbox, name, ret, e) == 0)
		return 0;
	if (e->code != ERR_NOT_FOUND ||
	    store_run(s, &insert, ARGS(TEXT(sandbox), TEXT(name), NUMBER(STORE_WRAPPERS_MAX)),
		      &res, e) < 0)
		return -1;
	if (store_wrapper_get(s, sandbox, name, ret, e) == 0)
		return 0;
	if (e->code != ERR_NOT_FOUND)
		return -1;
	return err_set(e, ERR_LIMIT, "sandbox %s has %d wrappers, or was just deleted", sandbox,
		       STORE_WRAPPERS_MAX);
}

int store_wrapper_move(struct store *s, const struct wrapper *w, struct wrapper *ret,
		       struct err *e)
{
	const struct lease *l = &w->lease;
	uint64_t deadline = lease_deadline_ms(l);
	struct wrapper got = { 0 };
	int n = store_run_one(
		s, &move_it,
		ARGS(TEXT(w->sandbox), TEXT(w->name), NUMBER(w->version),
		     TEXT(lease_state_name(l->state)), NUMBER(l->next_generation),
		     TEXT(l->instance.id), NUMBER(l->instance.generation),
		     NUMBER(deadline == NEVER ? 0 : deadline), NUMBER(l->keep_warm_ms),
		     TEXT(l->session_wide ? "t" : "f"), TEXT(lease_reason_name(l->reason)),
		     NUMBER(l->stop.requested_ms), NUMBER(l->stop.attempt),
		     NUMBER(l->stop.attempts), NUMBER(l->stop.rechecks),
		     TEXT(l->stop.last_error), TEXT(w->what), TEXT(w->receipt),
		     TEXT(w->boot.host), TEXT(w->boot.boot_id)),
		columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_CONFLICT, "the lease of wrapper %s has changed meanwhile",
			       w->name);
	complete(&got);
	*ret = got;
	return 0;
}

int store_wrapper_list(struct store *s, const char *sandbox, wrapper_fn *on_row, void *arg,
		       struct err *e)
{
	return each(s, &list, ARGS(TEXT(sandbox)), on_row, arg, e);
}

int store_wrappers_due(struct store *s, const struct wrapper_due *due, wrapper_fn *on_row,
		       void *arg, struct err *e)
{
	return each(s, &due_now,
		    ARGS(TEXT(due->boot->host), NUMBER(due->limit),
			 TEXT(due->stopping ? "t" : "f"), TEXT(due->boot->boot_id)),
		    on_row, arg, e);
}

/* What changes of a record without a change of its state. */
#include <inttypes.h>

#include "store/sandbox-row.h"

#define USED_MAX 500 /* of one statement */

/* clang-format off */
static const struct statement patch = { "sandbox-patch",
	"WITH did AS (UPDATE sandbox SET labels = coalesce($3::jsonb, labels), "
	"env = coalesce($4, env), sleep_after_ms = coalesce($5::bigint, sleep_after_ms), "
	"keep_alive = coalesce($6::bigint = 1, keep_alive), expires_at = "
	"CASE WHEN $11::bigint IS NULL THEN expires_at WHEN $11::bigint = 0 THEN NULL "
	"ELSE " SQL_AFTER("$11") " END, deadline_at = "
	"CASE WHEN $7::bigint IS NULL THEN deadline_at WHEN $7::bigint = 0 THEN NULL "
	"ELSE " SQL_AFTER("$7") " END, (" LIMIT_COLUMNS ") = ROW (" LIMIT_VALUES("$8") "), "
	"profile = $9, limits_pending = limits_pending OR $10::bigint = 1, version = version + 1 "
	"WHERE id = $1 AND version = $2::bigint RETURNING *)"
	TELL("version", "'patch'", "state", "state", "''", "0", "did")
	"SELECT " SANDBOX_COLUMNS " FROM did" };
/* Some are of the network: it is told anew, until it is in force. */
static const struct statement limits_done = { "sandbox-limits-done",
	"WITH told AS (UPDATE sandbox_network SET version = version + 1 WHERE sandbox_id = $1) "
	"UPDATE sandbox SET limits_pending = false WHERE id = $1 AND version = $2::bigint "
	"RETURNING " SANDBOX_COLUMNS };
#define GUEST "UPDATE sandbox SET guest_version = $3::bigint, guest_compared = $4::bigint"
#define OF_VERSION " WHERE id = $1 AND version = $2::bigint RETURNING "
static const struct statement guest_same = { "sandbox-guest",
	GUEST OF_VERSION SANDBOX_COLUMNS };
static const struct statement guest_told = { "sandbox-guest-told",
	"WITH did AS (" GUEST ", version = version + 1" OF_VERSION "*)"
	TELL("version", "$5", "state", "state", "$6", "0", "did")
	"SELECT " SANDBOX_COLUMNS " FROM did" };
static const struct statement rearm = { "sandbox-rearm",
	"UPDATE sandbox SET deadline_at = CASE WHEN $3::bigint = 0 THEN NULL "
	"ELSE " SQL_AFTER("$3") " END WHERE id = $1 AND version = $2::bigint "
	"AND state IN ('ready', 'asleep', 'failed')" };
static const struct statement used_now = { "sandboxes-used",
	"UPDATE sandbox SET last_used_at = "
	"greatest(last_used_at, now() - u.ago * interval '1 millisecond'), "
	"busy_since = CASE WHEN u.busy = 0 THEN NULL "
	"ELSE coalesce(busy_since, now() - u.busy * interval '1 millisecond') END "
	"FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS u (id, ago, busy) "
	"WHERE sandbox.id = u.id" };
/* clang-format on */

/* A number that is SQL's NULL if it is not given. */
static struct arg number_or_null(const uint64_t *n)
{
	return n ? (struct arg)NUMBER(*n) : (struct arg)TEXT(NULL);
}

static int patch_row(struct store *s, const struct sandbox_patch *p, struct sandbox *ret,
		     struct err *e)
{
	uint64_t keep = p->keep_alive ? *p->keep_alive : 0;
	char limits[LIMITS_TEXT_SIZE];
	const struct arg items[] = {
		TEXT(p->id),
		NUMBER(p->version),
		TEXT(p->labels),
		TEXT(p->env),
		number_or_null(p->sleep_after_ms),
		number_or_null(p->keep_alive ? &keep : NULL),
		number_or_null(p->deadline_ms),
		TEXT(limits_text(p->limits, limits)),
		TEXT(p->profile),
		NUMBER(p->limits_pending),
		number_or_null(p->lifetime_ms),
	};
	int n = store_run_one(s, &patch, (struct args){ items, array_len(items) }, sandbox_columns,
			      ret, e);

	if (n == 0)
		return err_set(e, ERR_CONFLICT, "sandbox %.60s has changed meanwhile", p->id);
	return n < 0 ? -1 : 0;
}

static int patch_admitted(struct store *s, const struct sandbox_patch *p, struct sandbox *ret,
			  struct err *e)
{
	struct resources need = sandbox_need(p->was, p->limits);

	if (store_begin(s, e) < 0)
		return -1;
	if (sandbox_admit(s, p->host, p->room, &need, e) != 0 || patch_row(s, p, ret, e) < 0) {
		store_rollback(s);
		return -1;
	}
	return store_commit(s, e);
}

int store_sandbox_patch(struct store *s, const struct sandbox_patch *p, struct sandbox *ret,
			struct err *e)
{
	struct sandbox got = { 0 };

	if ((p->was ? patch_admitted : patch_row)(s, p, &got, e) < 0)
		return -1;
	*ret = got;
	return 0;
}

int store_sandbox_limits_done(struct store *s, const char *id, uint64_t version,
			      struct sandbox *ret, struct err *e)
{
	struct sandbox got = { 0 };
	int n = store_run_one(s, &limits_done, ARGS(TEXT(id), NUMBER(version)), sandbox_columns,
			      &got, e);

	if (n == 0)
		return err_set(e, ERR_CONFLICT, "sandbox %.60s has changed meanwhile", id);
	if (n > 0)
		*ret = got;
	return n < 0 ? -1 : 0;
}

int store_sandbox_guest(struct store *s, const struct sandbox_guest *g, struct sandbox *ret,
			struct err *e)
{
	struct args args = ARGS(TEXT(g->id), NUMBER(g->version), NUMBER(g->seen.guest),
				NUMBER(g->seen.host), TEXT(g->event), TEXT(g->reason));
	struct sandbox got = { 0 };
	int n;

	args.len -= g->event ? 0 : 2;
	n = store_run_one(s, g->event ? &guest_told : &guest_same, args, sandbox_columns, &got, e);
	if (n == 0)
		return err_set(e, ERR_CONFLICT, "sandbox %.60s has changed meanwhile", g->id);
	if (n > 0)
		*ret = got;
	return n < 0 ? -1 : 0;
}

int store_sandbox_rearm(struct store *s, const char *id, uint64_t version, uint64_t deadline_ms,
			struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &rearm, ARGS(TEXT(id), NUMBER(version), NUMBER(deadline_ms)), &res, e);
}

static int used_some(struct store *s, const struct sandbox_used *used, size_t n, struct err *e)
{
	cleanup(buf_done) struct buf ids = buf_make(USED_MAX * 80);
	cleanup(buf_done) struct buf ago = buf_make(USED_MAX * 24);
	cleanup(buf_done) struct buf busy = buf_make(USED_MAX * 24);
	cleanup(result_clear) PGresult *res = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *comma = i ? "," : "{";

		buf_addf(&ids, "%s%s", comma, used[i].id); /* checked ids: nothing to quote */
		buf_addf(&ago, "%s%" PRIu64, comma, used[i].ago_ms);
		buf_addf(&busy, "%s%" PRIu64, comma, used[i].busy_ago_ms);
	}
	buf_adds(&ids, "}");
	buf_adds(&ago, "}");
	buf_adds(&busy, "}");
	return store_run(s, &used_now,
			 ARGS(TEXT(buf_str(&ids)), TEXT(buf_str(&ago)), TEXT(buf_str(&busy))), &res,
			 e);
}

int store_sandboxes_used(struct store *s, const struct sandbox_used *used, size_t n,
			 struct err *e)
{
	while (n > 0) {
		size_t some = n < USED_MAX ? n : USED_MAX;

		if (used_some(s, used, some, e) < 0)
			return -1;
		used += some;
		n -= some;
	}
	return 0;
}

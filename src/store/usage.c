#include "store/usage.h"

#include <inttypes.h>

#include "lib/buf.h"
#include "store/rows.h"

#define AT_ONCE 500 /* rows of one statement */

/* clang-format off */
#define LARGER(column) column " = greatest(usage." column ", excluded." column "), "
static const struct statement put = { "usage-put",
	"INSERT INTO usage (sandbox_id, since_ms, owner, host, profile, cpu_us, "
	"memory_peak_bytes, memory_sum_mb, memory_looks, disk_peak_bytes, pids_peak, oom_kills) "
	"SELECT s.id, l.since, s.owner, s.host, s.profile, l.cpu, l.peak, l.sum, l.looks, l.disk, "
	"l.pids, l.oom FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], "
	"$5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[]) "
	"AS l (id, since, cpu, peak, sum, looks, disk, pids, oom) "
	"JOIN sandbox s ON s.id = l.id ON CONFLICT (sandbox_id, since_ms) DO UPDATE SET "
	LARGER("cpu_us") LARGER("memory_peak_bytes") LARGER("disk_peak_bytes")
	LARGER("pids_peak") LARGER("oom_kills")
	"memory_sum_mb = usage.memory_sum_mb + excluded.memory_sum_mb, "
	"memory_looks = usage.memory_looks + excluded.memory_looks, seen_at = now()" };

#define SUM(column) "coalesce(sum(" column "), 0)::bigint"
/* What was sent is counted by berth-egress, for a sandbox's whole life. */
#define SENT(column) "coalesce(" column ", 0)::bigint"
#define USAGE_SELECT \
	"SELECT u.sandbox_id AS sandbox, max(u.owner) AS owner, max(u.host) AS host, " \
	"max(u.profile) AS profile, " \
	"NOT EXISTS (SELECT 1 FROM sandbox s WHERE s.id = u.sandbox_id) AS gone, " \
	"min(u.since_ms) AS since_ms, " SQL_MS("max(u.seen_at)") " AS seen_ms, " \
	SUM("u.cpu_us") " AS cpu_us, max(u.memory_peak_bytes) AS memory_peak_bytes, " \
	"(sum(u.memory_sum_mb) * 1048576 / greatest(sum(u.memory_looks), 1))::bigint " \
	"AS memory_average_bytes, max(u.disk_peak_bytes) AS disk_peak_bytes, " \
	"max(u.pids_peak) AS pids_peak, " SUM("u.oom_kills") " AS oom_kills, " \
	SENT("max(n.connections)") " AS connections, " SENT("max(n.requests)") " AS requests, " \
	SENT("max(n.bytes_out)") " AS bytes_out " \
	"FROM usage u LEFT JOIN sandbox_network n USING (sandbox_id) " \
	"WHERE ($1::text IS NULL OR u.owner = $1) AND "
static const struct statement get = { "usage-get",
	USAGE_SELECT "u.sandbox_id = $2 GROUP BY u.sandbox_id" };
static const struct statement list = { "usage-list",
	USAGE_SELECT "u.sandbox_id > $2 GROUP BY u.sandbox_id ORDER BY u.sandbox_id "
	"LIMIT $3::bigint" };
#define TOTAL(column) \
	"(SELECT " SUM("n." column) " FROM sandbox_network n " \
	"WHERE $1::text IS NULL OR n.owner = $1)"
static const struct statement totals = { "usage-totals",
	"SELECT count(DISTINCT sandbox_id) AS sandboxes, " SUM("cpu_us") " AS cpu_us, "
	TOTAL("connections") " AS connections, " TOTAL("requests") " AS requests, "
	TOTAL("bytes_out") " AS bytes_out FROM usage WHERE ($1::text IS NULL OR owner = $1)" };

static const struct column columns[] = {
	COLUMN(COLUMN_ID, usage, sandbox),
	COLUMN(COLUMN_STR, usage, owner),
	COLUMN(COLUMN_STR, usage, host),
	COLUMN(COLUMN_STR, usage, profile),
	COLUMN(COLUMN_BOOL, usage, gone),
	COLUMN(COLUMN_U64, usage, since_ms),
	COLUMN(COLUMN_U64, usage, seen_ms),
	COLUMN(COLUMN_U64, usage, cpu_us),
	COLUMN(COLUMN_U64, usage, memory_peak_bytes),
	COLUMN(COLUMN_U64, usage, memory_average_bytes),
	COLUMN(COLUMN_U64, usage, disk_peak_bytes),
	COLUMN(COLUMN_U64, usage, pids_peak),
	COLUMN(COLUMN_U64, usage, oom_kills),
	COLUMN(COLUMN_U64, usage, connections),
	COLUMN(COLUMN_U64, usage, requests),
	COLUMN(COLUMN_U64, usage, bytes_out),
	COLUMNS_END
};

static const struct column totals_columns[] = {
	COLUMN(COLUMN_U64, usage_totals, sandboxes),
	COLUMN(COLUMN_U64, usage_totals, cpu_us),
	COLUMN(COLUMN_U64, usage_totals, connections),
	COLUMN(COLUMN_U64, usage_totals, requests),
	COLUMN(COLUMN_U64, usage_totals, bytes_out),
	COLUMNS_END
};

/* In the order of the statement's lists. */
static const size_t numbers[] = {
	offsetof(struct usage_look, since_ms), offsetof(struct usage_look, cpu_us),
	offsetof(struct usage_look, memory_peak_bytes), offsetof(struct usage_look, memory_sum_mb),
	offsetof(struct usage_look, memory_looks), offsetof(struct usage_look, disk_bytes),
	offsetof(struct usage_look, pids_peak), offsetof(struct usage_look, oom_kills),
};
/* clang-format on */

static void buffers_done(struct buf (*lists)[array_len(numbers) + 1])
{
	for (size_t i = 0; i < array_len(*lists); i++)
		buf_done(&(*lists)[i]);
}

static int put_some(struct store *s, const struct usage_look *looks, size_t n, struct err *e)
{
	cleanup(buffers_done) struct buf lists[array_len(numbers) + 1] = { 0 };
	cleanup(result_clear) PGresult *res = NULL;
	struct arg items[array_len(lists)];

	for (size_t k = 0; k < array_len(lists); k++) {
		lists[k] = buf_make(AT_ONCE * 80UL);
		for (size_t i = 0; i < n; i++) {
			const char *at = (const char *)&looks[i];

			buf_adds(&lists[k], i ? "," : "{");
			if (k == 0) /* a checked id: nothing to quote */
				buf_adds(&lists[k], looks[i].sandbox);
			else
				buf_addf(&lists[k], "%" PRIu64,
					 *(const uint64_t *)(const void *)(at + numbers[k - 1]));
		}
		buf_adds(&lists[k], "}");
		items[k] = (struct arg)TEXT(buf_str(&lists[k]));
	}
	return store_run(s, &put, (struct args){ items, array_len(items) }, &res, e);
}

int store_usage_put(struct store *s, const struct usage_look *looks, size_t n, struct err *e)
{
	for (size_t at = 0; at < n; at += AT_ONCE)
		if (put_some(s, looks + at, n - at < AT_ONCE ? n - at : AT_ONCE, e) < 0)
			return -1;
	return 0;
}

int store_usage_get(struct store *s, const char *owner, const char *sandbox, struct usage *ret,
		    struct err *e)
{
	struct usage got = { 0 };
	int n = store_run_one(s, &get, ARGS(TEXT(owner), TEXT(sandbox)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_NOT_FOUND, "nothing is known of what %.60s used", sandbox);
	*ret = got;
	return 0;
}

int store_usage_list(struct store *s, const struct usage_page *page, usage_fn *on_row, void *arg,
		     struct err *e)
{
	struct rows rows = { .columns = columns, .what = "usage", .after = 1, .limit = 2 };
	struct usage got;

	if (rows_open(&rows, s, &list,
		      ARGS(TEXT(page->owner), TEXT(page->after), NUMBER(page->limit)), e) < 0)
		return -1;
	while (rows_next(&rows, &got, sizeof(got), e))
		on_row(&got, arg);
	return rows_close(&rows);
}

int store_usage_totals(struct store *s, const char *owner, struct usage_totals *ret,
		       struct err *e)
{
	struct usage_totals got = { 0 };

	if (store_run_one(s, &totals, ARGS(TEXT(owner)), totals_columns, &got, e) < 0)
		return -1;
	*ret = got;
	return 0;
}

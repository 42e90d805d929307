/* Each setting of what is kept, in a real PostgreSQL: it empties its own table and no other. */
#include <stdlib.h>

#include "berthd/control/retention.h"
#include "berthd/runtime/berthd.h"
#include "store-world.h"
#include "store/retention.h"
#include "test.h"

#define OLD    "now() - interval '100 days'"
#define DAY_MS (24ULL * 3600 * 1000)

/* clang-format off */
/* A setting, its table, and a row of it that is 100 days old and of nothing that exists. */
#define ROW(setting, table, values) \
	{ offsetof(struct berthd_settings, setting), #setting, table, \
	  "INSERT INTO " table " " values }

static const struct {
	size_t setting;
	const char *name, *table, *insert;
} rows[] = {
	ROW(retention_usage, "usage",
	    "VALUES ('used', 1, 'ann', 'h1', '', 1, 1, 1, 1, 1, 1, 0, " OLD ")"),
	ROW(retention_network, "sandbox_network",
	    "(sandbox_id, owner, policy, changed_at) VALUES ('sent', 'ann', '{}', " OLD ")"),
	ROW(retention_events, "sandbox_event",
	    "VALUES ('x', 1, " OLD ", 'x', '', '', '', 0)"),
	ROW(retention_alerts, "alert",
	    "(kind, sandbox_id, owner, host, message, ended_at) "
	    "VALUES ('x', 'x', 'ann', 'h1', '', " OLD ")"),
	ROW(retention_security, "security_event",
	    "(sandbox_id, at, kind, name, port, rule, count) "
	    "VALUES ('x', " OLD ", 'x', '', 0, '', 1)"),
	ROW(retention_incidents, "incident",
	    "(hour, kind, source, sandbox_id, detail, first_at, last_at, count) "
	    "VALUES (" OLD ", 'x', '', '', '', " OLD ", " OLD ", 1)"),
	ROW(retention_idempotency, "idempotency",
	    "(owner, key, request, body_hash, sandbox_id, created_at) "
	    "VALUES ('ann', 'x', 'x', repeat('a', 64), 'x', " OLD ")"),
	ROW(retention_sessions, "agent_session",
	    "VALUES ('ann', 'x', 'x', 'per_session', 'p', '', 0, " OLD ")"),
	ROW(retention_caps, "cap", "VALUES ('x', " OLD ")"),
	ROW(retention_tombstones, "tombstone",
	    "VALUES ('x', 'ann', 'h1', 1, " OLD ", '')"),
};
/* clang-format on */

/* The tables that have no row, by name. */
static void add_emptied(struct world *w, struct buf *out)
{
	for (size_t i = 0; i < array_len(rows); i++) {
		char sql[128];

		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", rows[i].table);
		if (raw(w->sql, sql) == 0)
			buf_addf(out, "%s by %s;", rows[i].table, rows[i].name);
	}
}

static uint64_t remove_by(struct world *w, const struct berthd_settings *set)
{
	struct retention_ages ages = retention_ages(set);
	uint64_t removed = 0;
	bool more = false;
	struct err e;

	CHECK_OK(store_retention_run(w->s, &ages, &removed, &more, &e), &e);
	CHECK(!more);
	return removed;
}

TEST(each_setting_empties_its_own_table_and_no_other)
{
	cleanup(world_done) struct world w = world_make();

	CHECK_INT(array_len(rows), RETENTION_COUNT);
	for (size_t i = 0; i < array_len(rows); i++)
		raw(w.sql, rows[i].insert);
	for (size_t i = 0; i < array_len(rows); i++) {
		cleanup(free_ptr) struct berthd_settings *set = xcalloc(1, sizeof(*set));
		cleanup(buf_done) struct buf emptied = buf_make(1024), its = buf_make(1024);

		CHECK_INT(remove_by(&w, set), 0); /* 0: for ever */
		*(uint64_t *)(void *)((char *)set + rows[i].setting) = DAY_MS;
		CHECK_INT(remove_by(&w, set), 1);
		add_emptied(&w, &emptied);
		buf_addf(&its, "%s by %s;", rows[i].table, rows[i].name);
		CHECK_STR(buf_str(&emptied), buf_str(&its));
		raw(w.sql, rows[i].insert);
	}
}

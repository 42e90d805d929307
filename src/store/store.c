#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "store/row.h"

static int conninfo_check(const char *conninfo, struct err *e)
{
	char *why = NULL;
	PQconninfoOption *parsed = PQconninfoParse(conninfo, &why);

	if (!parsed)
		err_set(e, ERR_INVALID, "not a libpq connection string: %.*s",
			why ? (int)strcspn(why, "\n") : 0, why ? why : "");
	PQfreemem(why);
	PQconninfoFree(parsed);
	return parsed ? 0 : -1;
}

int store_open(const char *conninfo, struct store **ret, struct err *e)
{
	cleanup(store_closep) struct store *s = NULL;

	if (conninfo_check(conninfo, e) < 0)
		return -1;
	s = xcalloc(1, sizeof(*s));
	s->conninfo = xstrdup(conninfo);
	if (connection_ready(s, e) < 0)
		return -1;
	*ret = take_ptr(s);
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	connection_drop(s);
	free(s->conninfo);
	free(s);
}

void store_renews(struct store *s)
{
	s->renews = true;
	connection_drop(s); /* the next one is made for it */
}

bool store_is_unwritable(const struct err *e)
{
	return e->reason && strcmp(e->reason, STORE_UNWRITABLE) == 0;
}

int store_ping(struct store *s, struct err *e)
{
	static const struct statement ping = { "ping", "SELECT 1" };
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &ping, NO_ARGS, &res, e);
}

struct probe_row {
	uint64_t now_ms;
};

int store_probe(struct store *s, const char *host, uint64_t *now_ms, struct err *e)
{
	static const struct column columns[] = {
		COLUMN(COLUMN_U64, probe_row, now_ms),
		COLUMNS_END,
	};
	static const struct statement probe = {
		"probe", "WITH w AS (UPDATE host SET version = version WHERE id = $1) "
			 "SELECT " SQL_MS("clock_timestamp()") " AS now_ms"
	};
	struct probe_row row = { 0 };

	if (store_run_one(s, &probe, ARGS(TEXT(host)), columns, &row, e) < 0)
		return -1;
	*now_ms = row.now_ms;
	return 0;
}

struct store_counts store_counts(const struct store *s)
{
	return s->counts;
}

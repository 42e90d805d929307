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

int store_ping(struct store *s, struct err *e)
{
	static const struct statement ping = { "ping", "SELECT 1" };
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &ping, NO_ARGS, &res, e);
}

struct store_counts store_counts(const struct store *s)
{
	return s->counts;
}

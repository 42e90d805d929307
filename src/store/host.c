#include "store/host.h"

#include "store/row.h"

/* clang-format off */
static const struct statement put = { "host-put",
	"INSERT INTO host (id, version) VALUES ($1, $2) "
	"ON CONFLICT (id) DO UPDATE SET version = excluded.version, seen_at = now()" };
/* clang-format on */

int store_host_put(struct store *s, const char *id, const char *version, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &put, ARGS(TEXT(id), TEXT(version)), &res, e);
}

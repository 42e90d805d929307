#include "store/network.h"

#include "lib/str.h"
#include "store/limit-row.h"
#include "store/rows.h"

/* clang-format off */
#define NETWORK_COLUMNS \
	"owner, policy, locked, version, connections AS \"use.connections\", " \
	"requests AS \"use.requests\", bytes_out AS \"use.bytes_out\", bytes_in AS \"use.bytes_in\""

static const struct column network_columns[] = {
	COLUMN(COLUMN_STR, network_row, owner),
	COLUMN(COLUMN_STR, network_row, policy),
	COLUMN(COLUMN_BOOL, network_row, locked),
	COLUMN(COLUMN_U64, network_row, version),
	COLUMN(COLUMN_U64, network_row, use.connections),
	COLUMN(COLUMN_U64, network_row, use.requests),
	COLUMN(COLUMN_U64, network_row, use.bytes_out),
	COLUMN(COLUMN_U64, network_row, use.bytes_in),
	COLUMNS_END
};

static const struct column told_columns[] = {
	COLUMN(COLUMN_ID, network_told, sandbox),
	COLUMN(COLUMN_STR, network_told, row.owner),
	COLUMN(COLUMN_STR, network_told, row.policy),
	COLUMN(COLUMN_BOOL, network_told, row.locked),
	COLUMN(COLUMN_U64, network_told, row.version),
	COLUMN(COLUMN_U64, network_told, row.use.connections),
	COLUMN(COLUMN_U64, network_told, row.use.requests),
	COLUMN(COLUMN_U64, network_told, row.use.bytes_out),
	COLUMN(COLUMN_U64, network_told, row.use.bytes_in),
	COLUMN(COLUMN_BOOL, network_told, known),
	LIMIT_COLUMN_("connections", network_told, LIMIT_CONNECTIONS),
	LIMIT_COLUMN_("requests", network_told, LIMIT_REQUESTS),
	LIMIT_COLUMN_("bytes_out", network_told, LIMIT_BYTES_OUT),
	COLUMNS_END
};

static const struct statement get_many = { "networks-get",
	"SELECT n.sandbox_id AS sandbox, n.owner AS \"row.owner\", n.policy AS \"row.policy\", "
	"n.locked AS \"row.locked\", n.version AS \"row.version\", "
	"n.connections AS \"row.use.connections\", n.requests AS \"row.use.requests\", "
	"n.bytes_out AS \"row.use.bytes_out\", n.bytes_in AS \"row.use.bytes_in\", "
	"s.id IS NOT NULL AS known, coalesce(s.connections, 0) AS connections, "
	"coalesce(s.requests, 0) AS requests, coalesce(s.bytes_out, 0) AS bytes_out "
	"FROM sandbox_network n LEFT JOIN sandbox s ON s.id = n.sandbox_id "
	"WHERE n.sandbox_id = ANY (string_to_array($1, ' '))" };
static const struct statement get = { "network-get",
	"SELECT " NETWORK_COLUMNS " FROM sandbox_network WHERE sandbox_id = $1" };
static const struct statement put = { "network-put",
	"INSERT INTO sandbox_network AS n (sandbox_id, owner, policy) VALUES ($1, $2, $3) "
	"ON CONFLICT (sandbox_id) DO UPDATE SET policy = $3, version = n.version + 1, "
	"changed_at = now() WHERE $4::bigint = 0 OR NOT n.locked RETURNING " NETWORK_COLUMNS };
static const struct statement lock = { "network-lock",
	"INSERT INTO sandbox_network AS n (sandbox_id, owner, policy, locked) "
	"VALUES ($1, $2, '{\"mode\":\"none\"}', true) "
	"ON CONFLICT (sandbox_id) DO UPDATE SET locked = true, changed_at = now(), "
	"version = n.version + CASE WHEN n.locked THEN 0 ELSE 1 END RETURNING " NETWORK_COLUMNS };
static const struct statement used = { "network-used",
	"INSERT INTO sandbox_network AS n "
	"(sandbox_id, owner, policy, connections, requests, bytes_out, bytes_in) "
	"VALUES ($1, $2, '{\"mode\":\"none\"}', $3::bigint, $4::bigint, $5::bigint, $6::bigint) "
	"ON CONFLICT (sandbox_id) DO UPDATE SET "
	"connections = greatest(n.connections, $3::bigint), "
	"requests = greatest(n.requests, $4::bigint), "
	"bytes_out = greatest(n.bytes_out, $5::bigint), "
	"bytes_in = greatest(n.bytes_in, $6::bigint)" };
static const struct statement touch = { "network-touch",
	"UPDATE sandbox_network SET version = version + 1, changed_at = now() "
	"WHERE owner = $1 AND (policy::jsonb -> 'secrets') ? $2" };
static const struct statement versions = { "network-versions",
	"SELECT n.sandbox_id, n.version FROM sandbox_network n "
	"JOIN sandbox s ON s.id = n.sandbox_id "
	"WHERE s.host = $1 AND s.state = 'ready' AND n.sandbox_id > $2 "
	"ORDER BY n.sandbox_id LIMIT $3::bigint" };

static const struct column security_columns[] = {
	COLUMN(COLUMN_U64, security_event, id),
	COLUMN(COLUMN_ID, security_event, sandbox_id),
	COLUMN(COLUMN_U64, security_event, at_ms),
	COLUMN(COLUMN_STR, security_event, kind),
	COLUMN(COLUMN_STR, security_event, name),
	COLUMN(COLUMN_U64, security_event, port),
	COLUMN(COLUMN_STR, security_event, rule),
	COLUMN(COLUMN_U64, security_event, count),
	COLUMNS_END
};

static const struct statement security_add = { "security-add",
	"INSERT INTO security_event (sandbox_id, at, kind, name, port, rule, count) "
	"VALUES ($1, to_timestamp($2::bigint / 1000.0), $3, $4, $5::bigint, $6, $7::bigint)" };
static const struct statement security_trim = { "security-trim",
	"DELETE FROM security_event WHERE sandbox_id = $1 AND id <= (SELECT id FROM security_event "
	"WHERE sandbox_id = $1 ORDER BY id DESC OFFSET $2::bigint LIMIT 1)" };
static const struct statement security_list = { "security-list",
	"SELECT id, sandbox_id, " SQL_MS("at") " AS at_ms, kind, name, port, rule, count "
	"FROM security_event WHERE sandbox_id = $1 AND id > $2::bigint "
	"ORDER BY id LIMIT $3::bigint" };

#define SECRET_COLUMNS "owner, name, host, methods, paths, header, sealed, " \
	SQL_MS("changed_at") " AS changed_ms"
static const struct column secret_columns[] = {
	COLUMN(COLUMN_STR, secret, owner),
	COLUMN(COLUMN_STR, secret, name),
	COLUMN(COLUMN_STR, secret, host),
	COLUMN(COLUMN_STR, secret, methods),
	COLUMN(COLUMN_STR, secret, paths),
	COLUMN(COLUMN_STR, secret, header),
	COLUMN(COLUMN_STR, secret, sealed),
	COLUMN(COLUMN_U64, secret, changed_ms),
	COLUMNS_END
};

static const struct statement secret_put = { "secret-put",
	"INSERT INTO secret (owner, name, host, methods, paths, header, sealed) "
	"SELECT $1, $2, $3, $4, $5, $6, $7 "
	"WHERE (SELECT count(*) FROM secret WHERE owner = $1 AND name <> $2) < $8::bigint "
	"ON CONFLICT (owner, name) DO UPDATE SET host = $3, methods = $4, paths = $5, header = $6, "
	"sealed = $7, changed_at = now() RETURNING " SECRET_COLUMNS };
static const struct statement secret_get = { "secret-get",
	"SELECT " SECRET_COLUMNS " FROM secret WHERE owner = $1 AND name = $2" };
static const struct statement secrets_named = { "secrets-named",
	"SELECT " SECRET_COLUMNS " FROM secret WHERE name = ANY (string_to_array($2, ' ')) "
	"AND owner IN (SELECT n.owner FROM sandbox_network n "
	"WHERE n.sandbox_id = ANY (string_to_array($1, ' ')))" };
static const struct statement secret_remove = { "secret-remove",
	"DELETE FROM secret WHERE owner = $1 AND name = $2 RETURNING " SECRET_COLUMNS };
static const struct statement secret_list = { "secret-list",
	"SELECT " SECRET_COLUMNS " FROM secret WHERE owner = $1 ORDER BY name LIMIT $2::bigint" };
/* clang-format on */

int store_network_get(struct store *s, const char *sandbox, struct network_row *ret,
		      struct err *e)
{
	int n = store_run_one(s, &get, ARGS(TEXT(sandbox)), network_columns, ret, e);

	if (n < 0)
		return -1;
	return n == 1 ? 0
		      : err_set(e, ERR_NOT_FOUND, "no network policy was set for %s", sandbox);
}

int store_networks_get(struct store *s, const char *ids, network_told_fn *on_row, void *arg,
		       struct err *e)
{
	cleanup(free_ptr) struct network_told *got = xcalloc(1, sizeof(*got));
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &get_many, ARGS(TEXT(ids)), &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		if (row_read(res, i, told_columns, got, e) < 0)
			return -1;
		on_row(got, arg);
	}
	return 0;
}

int store_network_row(struct store *s, const char *sandbox, struct network_row *row, struct err *e)
{
	if (store_network_get(s, sandbox, row, e) == 0)
		return 0;
	if (e->code != ERR_NOT_FOUND)
		return -1;
	row->version = 1;
	return str_copy(row->policy, sizeof(row->policy), "{\"mode\":\"none\"}")
		       ? 0
		       : err_set(e, ERR_INTERNAL, "policy");
}

int store_network_put(struct store *s, const struct network_put *p, struct network_row *ret,
		      struct err *e)
{
	int n = store_run_one(s, &put,
			      ARGS(TEXT(p->sandbox), TEXT(p->owner), TEXT(p->policy),
				   NUMBER(p->unlocked ? 1 : 0)),
			      network_columns, ret, e);

	if (n < 0)
		return -1;
	if (n == 1)
		return 0;
	err_set(e, ERR_CONFLICT, "the network of %s is locked", p->sandbox);
	return err_fix(e, "Only an admin's key may change it now.");
}

int store_network_lock(struct store *s, const char *sandbox, const char *owner,
		       struct network_row *ret, struct err *e)
{
	return store_run_one(s, &lock, ARGS(TEXT(sandbox), TEXT(owner)), network_columns, ret, e) <
			       0
		       ? -1
		       : 0;
}

static int run(struct store *s, const struct statement *st, struct args args, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, st, args, &res, e);
}

int store_network_used(struct store *s, const char *sandbox, const char *owner,
		       const struct network_use *use, struct err *e)
{
	return run(s, &used,
		   ARGS(TEXT(sandbox), TEXT(owner), NUMBER(use->connections),
			NUMBER(use->requests), NUMBER(use->bytes_out), NUMBER(use->bytes_in)),
		   e);
}

int store_network_touch(struct store *s, const char *owner, const char *secret, struct err *e)
{
	return run(s, &touch, ARGS(TEXT(owner), TEXT(secret)), e);
}

struct version_row {
	char sandbox_id[SANDBOX_ID_SIZE];
	uint64_t version;
};

static const struct column version_columns[] = {
	COLUMN(COLUMN_ID, version_row, sandbox_id),
	COLUMN(COLUMN_U64, version_row, version),
	COLUMNS_END
};

int store_network_versions(struct store *s, const char *host, const char *after,
			   network_version_fn *on_row, void *arg, struct err *e)
{
	struct rows rows = { version_columns, "the policy of", .after = 1, .limit = 2 };
	struct version_row got;

	if (rows_open(&rows, s, &versions,
		      ARGS(TEXT(host), TEXT(after), NUMBER(STORE_NETWORK_PAGE)), e) < 0)
		return -1;
	while (rows_next(&rows, &got, sizeof(got), e))
		on_row(got.sandbox_id, got.version, arg);
	return rows_close(&rows);
}

int store_security_add(struct store *s, const struct security_event *ev, struct err *e)
{
	return run(s, &security_add,
		   ARGS(TEXT(ev->sandbox_id), NUMBER(ev->at_ms), TEXT(ev->kind), TEXT(ev->name),
			NUMBER(ev->port), TEXT(ev->rule), NUMBER(ev->count)),
		   e);
}

int store_security_trim(struct store *s, const char *sandbox, struct err *e)
{
	return run(s, &security_trim, ARGS(TEXT(sandbox), NUMBER(STORE_SECURITY_MAX)), e);
}

int store_security_list(struct store *s, const char *sandbox, uint64_t after,
			security_event_fn *on_row, void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &security_list,
		      ARGS(TEXT(sandbox), NUMBER(after), NUMBER(STORE_SECURITY_MAX)), &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct security_event got = { 0 };

		if (row_read(res, i, security_columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

int store_secret_put(struct store *s, const struct secret *k, struct err *e)
{
	struct secret got = { 0 };
	int n = store_run_one(s, &secret_put,
			      ARGS(TEXT(k->owner), TEXT(k->name), TEXT(k->host), TEXT(k->methods),
				   TEXT(k->paths), TEXT(k->header), TEXT(k->sealed),
				   NUMBER(STORE_SECRETS_MAX)),
			      secret_columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 1)
		return 0;
	return err_set(e, ERR_LIMIT, "there are %d secrets already", STORE_SECRETS_MAX);
}

static int one_secret(struct store *s, const struct statement *st, const char *owner,
		      const char *name, struct secret *ret, struct err *e)
{
	int n = store_run_one(s, st, ARGS(TEXT(owner), TEXT(name)), secret_columns, ret, e);

	if (n < 0)
		return -1;
	if (n == 1)
		return 0;
	err_set(e, ERR_NOT_FOUND, "there is no secret \"%.60s\"", name);
	return err_fix(e, "'berth secret ls' lists those there are.");
}

int store_secret_get(struct store *s, const char *owner, const char *name, struct secret *ret,
		     struct err *e)
{
	return one_secret(s, &secret_get, owner, name, ret, e);
}

int store_secret_remove(struct store *s, const char *owner, const char *name, struct secret *ret,
			struct err *e)
{
	return one_secret(s, &secret_remove, owner, name, ret, e);
}

static int each_secret(struct store *s, const struct statement *st, struct args args,
		       secret_fn *on_row, void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, st, args, &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct secret got = { 0 };

		if (row_read(res, i, secret_columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

int store_secrets_named(struct store *s, const char *ids, const char *names, secret_fn *on_row,
			void *arg, struct err *e)
{
	return each_secret(s, &secrets_named, ARGS(TEXT(ids), TEXT(names)), on_row, arg, e);
}

int store_secret_list(struct store *s, const char *owner, secret_fn *on_row, void *arg,
		      struct err *e)
{
	return each_secret(s, &secret_list, ARGS(TEXT(owner), NUMBER(STORE_SECRETS_MAX)), on_row,
			   arg, e);
}

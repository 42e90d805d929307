#include "store/key.h"

#include "store/row.h"

/* clang-format off */
#define KEY_COLUMNS \
	"id, name, owner, role, " SQL_MS("created_at") " AS created_ms, " \
	"coalesce(" SQL_MS("revoked_at") ", 0) AS revoked_ms"

static bool read_role(const char *text, void *at)
{
	enum role r = role_by_name(text);

	*(enum role *)at = r;
	return r != ROLE_UNSET;
}

static const struct column columns[] = {
	COLUMN(COLUMN_STR, key, id),
	COLUMN(COLUMN_STR, key, name),
	COLUMN(COLUMN_STR, key, owner),
	COLUMN(COLUMN_WORD, key, role, .read = read_role),
	COLUMN(COLUMN_U64, key, created_ms),
	COLUMN(COLUMN_U64, key, revoked_ms),
	COLUMNS_END
};

static const struct statement insert = { "key-insert",
	"INSERT INTO api_key (id, hash, name, owner, role) VALUES ($1, $2, $3, $4, $5)" };
static const struct statement find = { "key-find",
	"SELECT " KEY_COLUMNS " FROM api_key WHERE hash = $1 AND revoked_at IS NULL" };
static const struct statement list = { "key-list",
	"SELECT " KEY_COLUMNS " FROM api_key ORDER BY created_at, id" };
static const struct statement list_revoked = { "key-list-revoked",
	"SELECT " KEY_COLUMNS " FROM api_key "
	"WHERE revoked_at >= coalesce(to_timestamp(nullif($1::bigint, 0) / 1000.0), "
	"now() - $2::bigint * interval '1 ms')" };
static const struct statement revoke = { "key-revoke",
	"UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 "
	"RETURNING " KEY_COLUMNS };
/* clang-format on */

int store_key_insert(struct store *s, const struct key *k, const char *hash, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &insert,
			 ARGS(TEXT(k->id), TEXT(hash), TEXT(k->name), TEXT(k->owner),
			      TEXT(role_name(k->role))),
			 &res, e);
}

int store_key_find_by_hash(struct store *s, const char *hash, struct key *ret, struct err *e)
{
	struct key k = { 0 };
	int n = store_run_one(s, &find, ARGS(TEXT(hash)), columns, &k, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_UNAUTHENTICATED, "this key is not known, or was revoked");
	*ret = k;
	return 0;
}

static int list_keys(struct store *s, const struct statement *st, struct args args,
		     void (*on_key)(const struct key *k, void *arg), void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, st, args, &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct key k = { 0 };

		if (row_read(res, i, columns, &k, e) < 0)
			return -1;
		on_key(&k, arg);
	}
	return 0;
}

int store_key_list(struct store *s, void (*on_key)(const struct key *k, void *arg), void *arg,
		   struct err *e)
{
	return list_keys(s, &list, NO_ARGS, on_key, arg, e);
}

int store_key_list_revoked(struct store *s, uint64_t since_ms, uint64_t within_ms,
			   void (*on_key)(const struct key *k, void *arg), void *arg,
			   struct err *e)
{
	return list_keys(s, &list_revoked, ARGS(NUMBER(since_ms), NUMBER(within_ms)), on_key, arg,
			 e);
}

int store_key_revoke(struct store *s, const char *id, struct key *ret, struct err *e)
{
	struct key k = { 0 };
	int n = store_run_one(s, &revoke, ARGS(TEXT(id)), columns, &k, e);

	if (n < 0)
		return -1;
	if (n == 0) {
		err_set(e, ERR_NOT_FOUND, "no key %.60s", id);
		return err_fix(e, "Give its id, the first column of 'berth key ls'; a name may be "
				  "several keys'.");
	}
	*ret = k;
	return 0;
}

#include "store/cell.h"

#include <string.h>

#include "store/row.h"

/* clang-format off */
static const struct statement put_secret = { "cell-secret-put",
	"INSERT INTO cell (secret) VALUES ($1) ON CONFLICT DO NOTHING" };
static const struct statement get_secret = { "cell-secret-get", "SELECT secret FROM cell" };
static const struct statement get_now = { "cell-now", "SELECT " SQL_MS("now()") " AS now_ms" };
static const struct statement put_address = { "host-address",
	"UPDATE host SET address = $2 WHERE id = $1" };
static const struct statement add_copy = { "image-copy-add",
	"INSERT INTO image_copy (digest, host) VALUES ($1, $2) ON CONFLICT DO NOTHING" };
static const struct statement drop_copy = { "image-copy-drop",
	"DELETE FROM image_copy WHERE digest = $1 AND host = $2" };
/* clang-format on */

struct secret {
	char secret[CELL_SECRET_SIZE];
};

static const struct column secret_columns[] = {
	COLUMN(COLUMN_STR, secret, secret),
	COLUMNS_END,
};

int store_cell_secret(struct store *s, const char *fresh, char ret[CELL_SECRET_SIZE],
		      struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	struct secret got = { 0 };

	if (store_run(s, &put_secret, ARGS(TEXT(fresh)), &res, e) < 0 ||
	    store_run_one(s, &get_secret, NO_ARGS, secret_columns, &got, e) < 0)
		return -1;
	memcpy(ret, got.secret, CELL_SECRET_SIZE);
	return 0;
}

struct now {
	uint64_t now_ms;
};

static const struct column now_columns[] = {
	COLUMN(COLUMN_U64, now, now_ms),
	COLUMNS_END,
};

int store_cell_now(struct store *s, uint64_t *ret, struct err *e)
{
	struct now got = { 0 };

	if (store_run_one(s, &get_now, NO_ARGS, now_columns, &got, e) < 0)
		return -1;
	*ret = got.now_ms;
	return 0;
}

int store_host_address(struct store *s, const char *host, const char *address, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &put_address, ARGS(TEXT(host), TEXT(address)), &res, e);
}

int store_image_copy(struct store *s, const char *digest, const char *host, bool has,
		     struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, has ? &add_copy : &drop_copy, ARGS(TEXT(digest), TEXT(host)), &res, e);
}

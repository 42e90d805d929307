#include "store/image.h"

#include <string.h>

#include "store/row.h"

/* clang-format off */
#define IMAGE_COLUMNS "name, digest, source, bytes, " SQL_MS("created_at") " AS created_ms"

static const struct column columns[] = {
	COLUMN(COLUMN_STR, image, name),
	COLUMN(COLUMN_STR, image, digest),
	COLUMN(COLUMN_STR, image, source),
	COLUMN(COLUMN_INT, image, bytes),
	COLUMN(COLUMN_U64, image, created_ms),
	COLUMNS_END
};

static const struct statement put = { "image-put",
	"INSERT INTO image (name, digest, source, bytes) VALUES ($1, $2, $3, $4) "
	"ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, source = excluded.source, "
	"bytes = excluded.bytes, created_at = now() RETURNING " IMAGE_COLUMNS };
static const struct statement get = { "image-get",
	"SELECT " IMAGE_COLUMNS " FROM image WHERE name = $1" };
static const struct statement list = { "image-list",
	"SELECT " IMAGE_COLUMNS " FROM image ORDER BY name" };
/* The foreign key of `sandbox` refuses it, also against an insert of this moment. */
static const struct statement remove_it = { "image-remove",
	"DELETE FROM image WHERE name = $1 RETURNING " IMAGE_COLUMNS };
static const struct statement unused = { "digest-unused",
	"SELECT 1 WHERE EXISTS (SELECT 1 FROM image WHERE digest = $1) "
	"OR EXISTS (SELECT 1 FROM sandbox WHERE image_digest = $1)" };
/* clang-format on */

static int found_or_not(int n, const char *name, const struct image *got, struct image *ret,
			struct err *e)
{
	if (n < 0)
		return -1;
	if (n == 0) {
		err_set(e, ERR_NOT_FOUND, "no image \"%.100s\"", name);
		return err_fix(e, "'berth image ls' lists the images there are.");
	}
	*ret = *got;
	return 0;
}

int store_image_put(struct store *s, const struct image *image, struct image *ret, struct err *e)
{
	struct image got = { 0 };
	int n = store_run_one(s, &put,
			      ARGS(TEXT(image->name), TEXT(image->digest), TEXT(image->source),
				   NUMBER(image->bytes)),
			      columns, &got, e);

	return found_or_not(n, image->name, &got, ret, e);
}

int store_image_get(struct store *s, const char *name, struct image *ret, struct err *e)
{
	struct image got = { 0 };
	int n = store_run_one(s, &get, ARGS(TEXT(name)), columns, &got, e);

	return found_or_not(n, name, &got, ret, e);
}

int store_image_list(struct store *s, void (*on_image)(const struct image *image, void *arg),
		     void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &list, NO_ARGS, &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct image got = { 0 };

		if (row_read(res, i, columns, &got, e) < 0)
			return -1;
		on_image(&got, arg);
	}
	return 0;
}

int store_image_remove(struct store *s, const char *name, struct image *ret, struct err *e)
{
	struct image got = { 0 };
	int n = store_run_one(s, &remove_it, ARGS(TEXT(name)), columns, &got, e);

	if (n < 0 && e->code == ERR_CONFLICT) {
		err_set(e, ERR_CONFLICT, "image \"%.100s\" is in use by sandboxes", name);
		return err_fix(e, "Delete the sandboxes made from it first.");
	}
	return found_or_not(n, name, &got, ret, e);
}

int store_digest_is_unused(struct store *s, const char *digest, bool *ret, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &unused, ARGS(TEXT(digest)), &res, e) < 0)
		return -1;
	*ret = PQntuples(res) == 0;
	return 0;
}

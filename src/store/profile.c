#include "store/profile.h"

#include "store/limit-row.h"

/* clang-format off */
#define PROFILE_COLUMNS "name, " LIMIT_COLUMNS ", built_in"
static const struct column columns[] = {
	COLUMN(COLUMN_STR, profile, name),
	LIMIT_COLUMN_ROWS(profile),
	COLUMN(COLUMN_BOOL, profile, built_in),
	COLUMNS_END
};

static const struct statement get = { "profile-get",
	"SELECT " PROFILE_COLUMNS " FROM profile WHERE name = $1" };
static const struct statement list = { "profile-list",
	"SELECT " PROFILE_COLUMNS " FROM profile ORDER BY built_in DESC, name LIMIT $1::bigint" };
static const struct statement put = { "profile-put",
	"INSERT INTO profile (name, " LIMIT_COLUMNS ") SELECT $1, " LIMIT_VALUES("$2") " "
	"WHERE (SELECT count(*) FROM profile WHERE name <> $1) < $3::bigint "
	"ON CONFLICT (name) DO UPDATE SET (" LIMIT_COLUMNS ") = ROW (" LIMIT_VALUES("$2") ") "
	"WHERE NOT profile.built_in RETURNING " PROFILE_COLUMNS };
static const struct statement drop = { "profile-remove",
	"DELETE FROM profile WHERE name = $1 AND NOT built_in RETURNING " PROFILE_COLUMNS };
/* clang-format on */

static int no_profile(enum err_code code, const char *name, struct err *e)
{
	err_set(e, code, "there is no profile \"%.31s\"", name);
	return err_fix(e, "'berth profile ls' lists those there are.");
}

int store_profile_get(struct store *s, const char *name, struct profile *ret, struct err *e)
{
	struct profile got = { 0 };
	int n = store_run_one(s, &get, ARGS(TEXT(name)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return no_profile(ERR_INVALID, name, e);
	*ret = got;
	return 0;
}

/* Nothing was changed: because of whom? */
static int refuse(struct store *s, const char *name, struct err *e)
{
	struct profile there;

	if (store_profile_get(s, name, &there, e) == 0)
		return err_set(e, ERR_DENIED, "the profile %s is built in", name);
	return e->code == ERR_INVALID ? 1 : -1;
}

int store_profile_put(struct store *s, const struct profile *p, struct profile *ret,
		      struct err *e)
{
	char limits[LIMITS_TEXT_SIZE];
	struct profile got = { 0 };
	int n = store_run_one(s, &put,
			      ARGS(TEXT(p->name), TEXT(limits_text(&p->limits, limits)),
				   NUMBER(STORE_PROFILES_MAX)),
			      columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0 && refuse(s, p->name, e) < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_LIMIT, "there are %d profiles already", STORE_PROFILES_MAX);
	*ret = got;
	return 0;
}

int store_profile_remove(struct store *s, const char *name, struct profile *ret, struct err *e)
{
	struct profile got = { 0 };
	int n = store_run_one(s, &drop, ARGS(TEXT(name)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0 && refuse(s, name, e) < 0)
		return -1;
	if (n == 0)
		return no_profile(ERR_NOT_FOUND, name, e);
	*ret = got;
	return 0;
}

int store_profiles(struct store *s, profile_fn *on_row, void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &list, ARGS(NUMBER(STORE_PROFILES_MAX)), &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct profile got = { 0 };

		if (row_read(res, i, columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

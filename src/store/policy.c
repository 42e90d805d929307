#include "store/policy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/row.h"

/* clang-format off */
#define POLICY_COLUMNS "id, scope, subject, isolation, profile, runtime"
#define SESSION_COLUMNS \
	"identity_key, isolation AS \"choice.isolation\", profile AS \"choice.profile\", " \
	"runtime AS \"choice.runtime\", policy_id AS \"choice.policy_id\", identified, org, " \
	"user_id AS \"user\", bot"

static const struct statement add = { "policy-add",
	"INSERT INTO policy (scope, subject, isolation, profile, runtime) "
	"SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM policy) < $6::bigint "
	"RETURNING " POLICY_COLUMNS };
static const struct statement drop = { "policy-remove",
	"DELETE FROM policy WHERE id = $1::bigint RETURNING " POLICY_COLUMNS };
static const struct statement list = { "policy-list",
	"SELECT " POLICY_COLUMNS " FROM policy ORDER BY id LIMIT $1::bigint" };
static const struct statement session_get = { "session-get",
	"SELECT " SESSION_COLUMNS " FROM agent_session WHERE owner = $1 AND session = $2" };
static const struct statement session_put = { "session-put",
	"INSERT INTO agent_session "
	"(owner, session, identity_key, isolation, profile, runtime, policy_id, identified, org, "
	"user_id, bot) VALUES ($1, $2, $3, $4, $5, $6, $7::bigint, true, $8, $9, $10) "
	"ON CONFLICT DO NOTHING "
	"RETURNING " SESSION_COLUMNS };
/* clang-format on */

static bool read_scope(const char *text, void *at)
{
	return policy_scope_by_name(text, at);
}

static bool read_isolation(const char *text, void *at)
{
	return policy_isolation_by_name(text, at);
}

static const struct column columns[] = {
	COLUMN(COLUMN_U64, policy, id),
	COLUMN(COLUMN_WORD, policy, scope, .read = read_scope),
	COLUMN(COLUMN_STR, policy, subject),
	COLUMN(COLUMN_WORD, policy, isolation, .read = read_isolation),
	COLUMN(COLUMN_STR, policy, profile),
	COLUMN(COLUMN_STR, policy, runtime),
	COLUMNS_END
};

static const struct column session_columns[] = {
	COLUMN(COLUMN_KEY, agent_session, identity_key),
	COLUMN(COLUMN_WORD, agent_session, choice.isolation, .read = read_isolation),
	COLUMN(COLUMN_STR, agent_session, choice.profile),
	COLUMN(COLUMN_STR, agent_session, choice.runtime),
	COLUMN(COLUMN_U64, agent_session, choice.policy_id),
	COLUMN(COLUMN_BOOL, agent_session, identified),
	COLUMN(COLUMN_STR, agent_session, org),
	COLUMN(COLUMN_STR, agent_session, user),
	COLUMN(COLUMN_STR, agent_session, bot),
	COLUMNS_END
};

int store_policy_add(struct store *s, const struct policy *p, struct policy *ret, struct err *e)
{
	struct policy got = { 0 };
	int n = store_run_one(s, &add,
			      ARGS(TEXT(policy_scope_name(p->scope)), TEXT(p->subject),
				   TEXT(policy_isolation_name(p->isolation)), TEXT(p->profile),
				   TEXT(p->runtime), NUMBER(STORE_POLICIES_MAX)),
			      columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_LIMIT, "there are %d policies already", STORE_POLICIES_MAX);
	*ret = got;
	return 0;
}

static int no_policy(uint64_t id, struct err *e)
{
	err_set(e, ERR_NOT_FOUND, "no policy %" PRIu64, id);
	return err_fix(e, "'berth policy ls' lists those there are.");
}

int store_policy_remove(struct store *s, uint64_t id, struct policy *ret, struct err *e)
{
	struct policy got = { 0 };
	int n = store_run_one(s, &drop, ARGS(NUMBER(id)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return no_policy(id, e);
	*ret = got;
	return 0;
}

int store_policy_list(struct store *s, struct policy **ret, size_t *len, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	cleanup(free_ptr) struct policy *rows = NULL;
	int n;

	if (store_run(s, &list, ARGS(NUMBER(STORE_POLICIES_MAX)), &res, e) < 0)
		return -1;
	n = PQntuples(res);
	rows = xcalloc((size_t)n + 1, sizeof(*rows));
	for (int i = 0; i < n; i++)
		if (row_read(res, i, columns, &rows[i], e) < 0)
			return -1;
	*len = (size_t)n;
	*ret = take_ptr(rows);
	return 0;
}

int store_session_get(struct store *s, const char *owner, const char *session,
		      struct agent_session *ret, struct err *e)
{
	struct agent_session got = { 0 };
	int n = store_run_one(s, &session_get, ARGS(TEXT(owner), TEXT(session)), session_columns,
			      &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_NOT_FOUND, "nothing was decided for session \"%.60s\"",
			       session);
	*ret = got;
	return 0;
}

bool session_is_decided_so(const struct agent_session *a, const struct agent_session *b)
{
	return strcmp(a->identity_key, b->identity_key) == 0 && strcmp(a->org, b->org) == 0 &&
	       strcmp(a->user, b->user) == 0 && strcmp(a->bot, b->bot) == 0;
}

int store_session_put(struct store *s, const char *owner, const char *session,
		      const struct agent_session *decided, struct agent_session *ret,
		      struct err *e)
{
	const struct policy_choice *c = &decided->choice;
	struct agent_session got = { 0 };
	enum identity_kind kind;
	int n;

	if (identity_key_check(decided->identity_key, &kind, e) < 0)
		return -1; /* what would not be read back is not written */
	n = store_run_one(s, &session_put,
			  ARGS(TEXT(owner), TEXT(session), TEXT(decided->identity_key),
			       TEXT(policy_isolation_name(c->isolation)), TEXT(c->profile),
			       TEXT(c->runtime), NUMBER(c->policy_id), TEXT(decided->org),
			       TEXT(decided->user), TEXT(decided->bot)),
			  session_columns, &got, e);
	if (n < 0)
		return -1;
	if (n == 0) /* another one was faster, and it has been committed */
		return store_session_get(s, owner, session, ret, e);
	*ret = got;
	return 0;
}

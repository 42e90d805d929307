/* Which sandboxes: by an address, or by what they have in common. */
#include <string.h>

#include "store/sandbox-row.h"

/* clang-format off */
/* The sandbox that holds the name comes first, then those that are going or have nothing left. */
#define BEST \
	" AND ($2::text IS NULL OR owner = $2) ORDER BY owner = $3 DESC, " \
	"(state <> 'deleting' AND files_kept) DESC, created_at DESC, id LIMIT 2"
static const struct statement by_key = { "sandbox-by-key",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE identity_key IN ($1, $4) "
	"AND identity_key <> ''" BEST };
static const struct statement by_name = { "sandbox-by-name",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE name = $1 AND name <> ''" BEST };

#define PAGE " AND ($4 = '' OR state = $4) "
#define ORDERED "ORDER BY id LIMIT $2::bigint"
/* Labels that must be there are found by their index; the rest is looked at. */
#define UNEQUAL \
	"AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements($5::jsonb) n WHERE labels @> n) "
#define WITH_LABELS "AND labels <> '{}' AND labels @> $6::jsonb AND labels ?& $7::text[] "
static const struct statement list_all = { "sandbox-list-all",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE id > $1 AND $3::text IS NULL" PAGE ORDERED };
static const struct statement list_owned = { "sandbox-list-owned",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE owner = $3 AND id > $1" PAGE ORDERED };
static const struct statement list_unequal = { "sandbox-list-unequal",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE id > $1 "
	"AND ($3::text IS NULL OR owner = $3)" PAGE UNEQUAL ORDERED };
static const struct statement list_labelled = { "sandbox-list-labelled",
	"SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE id > $1 "
	"AND ($3::text IS NULL OR owner = $3)" PAGE UNEQUAL WITH_LABELS ORDERED };
/* clang-format on */

static int none(const char *text, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no sandbox %.60s", text);
}

int store_sandbox_find(struct store *s, const struct sandbox_search *q, struct sandbox *ret,
		       struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	bool key = q->kind == ADDRESS_KEY;
	struct args args = ARGS(TEXT(q->text), TEXT(q->owner), TEXT(q->self ? q->self : ""),
				TEXT(q->legacy ? q->legacy : ""));
	struct sandbox got = { 0 }, other = { 0 };

	if (q->kind == ADDRESS_ID)
		return store_sandbox_get(s, q->owner, q->text, ret, e);
	args.len -= key ? 0 : 1;
	if (store_run(s, key ? &by_key : &by_name, args, &res, e) < 0)
		return -1;
	if (PQntuples(res) == 0)
		return none(q->text, e);
	if (row_read(res, 0, sandbox_columns, &got, e) < 0)
		return -1;
	if (PQntuples(res) > 1 && row_read(res, 1, sandbox_columns, &other, e) < 0)
		return -1;
	if (PQntuples(res) > 1 && !q->owner && q->self && strcmp(got.owner, q->self) != 0 &&
	    strcmp(got.owner, other.owner) != 0) {
		err_set(e, ERR_CONFLICT, "%.60s is the name of %s and of %s", q->text, got.id,
			other.id);
		return err_fix(e, "They belong to different owners: use the id.");
	}
	*ret = got;
	return 0;
}

static int list_open(struct rows *rows, struct store *s, const struct sandbox_page *page,
		     struct err *e)
{
	const struct selector *sel = page->selector;
	struct args args = ARGS(TEXT(page->after), NUMBER(page->limit), TEXT(page->owner),
				TEXT(page->state ? page->state : ""),
				TEXT(sel ? buf_str(&sel->unequal) : NULL),
				TEXT(sel ? buf_str(&sel->equal) : NULL),
				TEXT(sel ? buf_str(&sel->keys) : NULL));

	if (sel && sel->indexed)
		return rows_open(rows, s, &list_labelled, args, e);
	args.len = sel ? 5 : 4;
	if (sel)
		return rows_open(rows, s, &list_unequal, args, e);
	return rows_open(rows, s, page->owner ? &list_owned : &list_all, args, e);
}

int store_sandbox_list(struct store *s, const struct sandbox_page *page, sandbox_fn *on_row,
		       void *arg, struct err *e)
{
	struct rows rows = { sandbox_columns, "sandbox", .after = 0, .limit = 1 };
	struct sandbox got;

	if (sandbox_limit_check(page->limit, e) < 0 || list_open(&rows, s, page, e) < 0)
		return -1;
	while (rows_next(&rows, &got, sizeof(got), e))
		on_row(&got, arg);
	return rows_close(&rows);
}

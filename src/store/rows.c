#include "store/rows.h"

#include <assert.h>
#include <string.h>

int rows_open(struct rows *r, struct store *s, const struct statement *st, struct args args,
	      struct err *e)
{
	assert(args.len <= ROWS_ARGS_MAX);
	memcpy(r->args, args.items, args.len * sizeof(args.items[0]));
	r->args_len = args.len;
	r->s = s;
	r->st = st;
	return store_run(s, st, args, &r->res, e);
}

/* After the last row of a page: is there another to be asked for, and is it there? */
static bool next_page(struct rows *r, struct err *e)
{
	PGresult *next = NULL;
	int n = PQntuples(r->res);

	if (r->after == ROWS_NO_PAGES || (!r->all && r->left_out == 0) || n == 0 ||
	    (uint64_t)n < r->args[r->limit].number)
		return false;
	if (!r->all)
		r->args[r->limit].number = (uint64_t)r->left_out;
	r->args[r->after] = (struct arg)TEXT(PQgetvalue(r->res, n - 1, 0));
	if (store_run(r->s, r->st, (struct args){ r->args, r->args_len }, &next, e) < 0) {
		r->bad = -1;
		return false;
	}
	PQclear(r->res);
	r->res = next;
	r->at = r->left_out = 0;
	return true;
}

bool rows_next(struct rows *r, void *record, size_t size, struct err *e)
{
	do {
		while (r->at < PQntuples(r->res)) {
			int row = r->at++;
			struct err why;

			memset(record, 0, size);
			if (row_read(r->res, row, r->columns, record, &why) == 0)
				return true;
			r->left_out++;
			err_wrap(&why, "the record of %s %.60s", r->what,
				 PQgetvalue(r->res, row, 0));
			if (r->bad++ == 0)
				*e = why;
		}
	} while (next_page(r, e));
	return false;
}

int rows_close(struct rows *r)
{
	PQclear(r->res);
	r->res = NULL;
	return r->bad;
}

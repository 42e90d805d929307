/*
 * The rows of a list, for this room only, one after the other. One that cannot be read stops no
 * other: it is left out and counted. A list that is asked for in pages asks for as many more
 * then, so that a page is as long as was wanted.
 */
#pragma once

#include "store/row.h"

#define ROWS_ARGS_MAX 8
#define ROWS_NO_PAGES (-1)

struct rows {
	const struct column *columns; /* the first says which row it is, also to `after` */
	const char *what;             /* one of them, for the error */
	int after, limit;             /* which arguments; `after` ROWS_NO_PAGES: a single page */
	bool all;                     /* page after page, to the end */

	/* Its own. */
	struct store *s;
	const struct statement *st;
	struct arg args[ROWS_ARGS_MAX];
	size_t args_len;
	PGresult *res;
	int at, left_out; /* of this page */
	int bad;          /* of all; -1: a page could not be asked for */
};

must_check int rows_open(struct rows *r, struct store *s, const struct statement *st,
			 struct args args, struct err *e);

/* The next one that can be read, into the `size` bytes of `record`. False: there is none. */
must_check bool rows_next(struct rows *r, void *record, size_t size, struct err *e);

/* How many were left out, of which `e` names the first; -1: the list is not whole. */
must_check int rows_close(struct rows *r);

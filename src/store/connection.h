/*
 * The connection under a store, for this room only: made when needed, dropped
 * when in doubt, and the one place where libpq's failures become our errors.
 */
#pragma once

#include <libpq-fe.h>

#include "store/store.h"

#define STORE_STATEMENTS_MAX 256

struct statement;

struct store {
	char *conninfo;
	PGconn *conn;   /* NULL: to be made by the next call */
	bool open;      /* a transaction is: store_begin() */
	bool renews;    /* see store_renews() */
	unsigned newer; /* the schema of the database, if this program does not know it; or 0 */
	const struct statement *prepared[STORE_STATEMENTS_MAX];
	size_t prepared_len;
	struct store_counts counts;
};

/* A connection that is alive as far as can be seen without asking, or ERR_BUSY. */
must_check int connection_ready(struct store *s, struct err *e);
void connection_drop(struct store *s);

/*
 * Which schema the database has: a newer one than this program knows is not written to. Told of a
 * migration (MIGRATED), an idle connection is dropped as if the server had gone, and the next one
 * looks again.
 */
#define MIGRATED "berth_migrated"
must_check int schema_look(struct store *s, struct err *e);
int schema_refuse(unsigned newer, struct err *e); /* returns -1 */

/* Turn what libpq says about this result (NULL is fine) into an error. Returns -1. */
int connection_fail(struct store *s, const PGresult *res, struct err *e);

static inline void result_clear(PGresult **res)
{
	PQclear(*res);
}

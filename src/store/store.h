/*
 * The store: one connection to PostgreSQL.
 *
 * One function is one transaction. A store is used by one thread at a time and
 * blocks; a program with many workers opens one each. It never logs. A connection
 * that was lost is made again by the next call; a call during which it is lost
 * (or cannot be made) is ERR_BUSY and *unknown*: the transaction may or may not
 * have been committed, so it is never ERR_NOT_FOUND.
 *
 * The database's clock is the only clock: deadlines go in as milliseconds from
 * now and are compared with now() there.
 */
#pragma once

#include "lib/err.h"

struct store;

/*
 * The reason of an ERR_BUSY: the database answers and takes no writes. It is read-only, or
 * its disk is full. Unlike with any other ERR_BUSY, the transaction was not committed.
 */
#define STORE_UNWRITABLE "store_unwritable"
bool store_is_unwritable(const struct err *e);

/* Connects at once; `conninfo` is libpq's and may override our timeouts. */
must_check int store_open(const char *conninfo, struct store **ret, struct err *e);
void store_close(struct store *s); /* NULL is fine */

static inline void store_closep(struct store **s)
{
	store_close(*s);
}

/*
 * Bring the schema up to what this program knows. Any number of daemons may do
 * it at once. ERR_CONFLICT if the database is already newer than the program.
 */
must_check int store_migrate(struct store *s, struct err *e);

/*
 * An older program than the schema writes nothing: each write is ERR_BUSY with the reason
 * STORE_UNWRITABLE. But for the lease, whose end would freeze what runs: this store is for that.
 */
void store_renews(struct store *s);

must_check int store_ping(struct store *s, struct err *e); /* for health: a round trip */

/* The same with a write, to the row of this host, that changes nothing; and its clock. */
must_check int store_probe(struct store *s, const char *host, uint64_t *now_ms, struct err *e);

/*
 * What this store asked of the server since it was opened. pg_stat_database
 * counts transactions + prepares, and some more for each connect.
 */
struct store_counts {
	uint64_t transactions;
	uint64_t prepares; /* each statement once per connection */
	uint64_t connects;
};
struct store_counts store_counts(const struct store *s);

#include "store/connection.h"

#include <poll.h>
#include <string.h>

/*
 * Nothing waits for ever: not the connect, not a statement, not a lock, not a
 * peer that vanished. They stand before the conninfo, which may override them.
 */
static const char *const names[] = {
	"application_name",
	"connect_timeout",
	"tcp_user_timeout",
	"keepalives_idle",
	"target_session_attrs",
	"client_encoding",
	"options",
	"dbname", /* the conninfo: libpq expands it */
	NULL
};
static const char *const values[] = {
	"berthd",
	"5",
	"10000",
	"10",
	"read-write",
	"UTF8",
	"-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s",
	NULL,
	NULL
};
_Static_assert(array_len(names) == array_len(values), "a value for every name");

#define BUSY_FIX "Check that PostgreSQL runs and takes connections; 'berth doctor' says more."
#define UNWRITABLE_FIX \
	"See PostgreSQL's log; give its disk room, or make it writable again. What runs goes on."

/* What a SQLSTATE, or its first characters, means. The first that fits counts. */
struct meaning {
	const char *sqlstate;
	enum err_code code;
	const char *unwritable; /* why nothing can be written; NULL: something else */
};

static const struct meaning meanings[] = {
	{ "22", ERR_INVALID },                    /* cannot be: bytes that are no UTF-8 */
	{ "23503", ERR_CONFLICT },                /* something refers to it */
	{ "23505", ERR_CONFLICT },                /* exists already */
	{ "23", ERR_INVALID },                    /* a check of the schema */
	{ "25006", ERR_BUSY, "it is read-only" }, /* also a standby, after a failover */
	{ "40", ERR_BUSY },                       /* deadlock, serialization */
	{ "55P03", ERR_BUSY },                    /* lock_timeout */
	{ "57", ERR_BUSY },                       /* statement_timeout, shutdown, starting up */
	{ "08", ERR_BUSY },
	{ "53100", ERR_BUSY, "its disk is full" },
	{ "53", ERR_BUSY }, /* out of connections, memory */
	{ "58030", ERR_BUSY, "its disk fails" },
	{ "", ERR_INTERNAL },
};

static const struct meaning *meaning_of(const char *sqlstate)
{
	const struct meaning *m = meanings;

	while (strncmp(sqlstate, m->sqlstate, strlen(m->sqlstate)) != 0)
		m++; /* the last fits all */
	return m;
}

static void on_notice(void *arg, const PGresult *res)
{
	(void)arg; /* this room does not log, and libpq must not write to stderr */
	(void)res;
}

static int unwritable(const char *why, struct err *e)
{
	err_set(e, ERR_BUSY, "the database takes no writes: %s", why);
	(void)err_reason(e, STORE_UNWRITABLE, 0);
	return err_fix(e, UNWRITABLE_FIX);
}

static int unreachable(const char *why, struct err *e)
{
	if (strstr(why, "read-only")) /* libpq's word on target_session_attrs */
		return unwritable("it is read-only", e);
	err_set(e, ERR_BUSY, "the database cannot be reached: %.*s", (int)strcspn(why, "\n"), why);
	(void)err_inner(e);
	return err_fix(e, BUSY_FIX);
}

void connection_drop(struct store *s)
{
	PQfinish(s->conn);
	s->conn = NULL;
	s->prepared_len = 0;
}

int connection_fail(struct store *s, const PGresult *res, struct err *e)
{
	const char *sqlstate = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
	const char *text = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const struct meaning *m;

	if (PQstatus(s->conn) != CONNECTION_OK || !sqlstate || !text) {
		unreachable(text ? text : PQerrorMessage(s->conn), e);
		connection_drop(s);
		return -1;
	}
	m = meaning_of(sqlstate);
	if (m->code != ERR_BUSY) {
		err_set(e, m->code, "database: %s (%s)", text, sqlstate);
		return err_inner(e);
	}
	if (m->unwritable && s->newer) {
		schema_refuse(s->newer, e);
	} else if (m->unwritable) {
		unwritable(m->unwritable, e);
	} else {
		err_set(e, m->code, "the database is busy: %s (%s)", text, sqlstate);
		(void)err_inner(e);
		(void)err_fix(e, BUSY_FIX);
	}
	/* It may be the wrong server by now, or a transaction left open: begin anew. */
	connection_drop(s);
	return -1;
}

/* That the schema was changed is the one thing it is told unasked. */
static bool was_migrated(PGconn *conn)
{
	PGnotify *told = PQnotifies(conn);

	PQfreemem(told);
	return told;
}

/*
 * Nothing was asked, so nothing can have come: bytes (or the end) waiting on an
 * idle connection mean that the server said goodbye. Seen before a statement is
 * sent, this is no failure: the statement was certainly not carried out.
 */
static bool said_goodbye(PGconn *conn)
{
	struct pollfd p = { .fd = PQsocket(conn), .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

static int connect_now(struct store *s, struct err *e)
{
	const char *with[array_len(values)];

	memcpy(with, values, sizeof(with));
	with[array_len(values) - 2] = s->conninfo;
	s->conn = PQconnectdbParams(names, with, 1);
	s->counts.connects++;
	if (PQstatus(s->conn) != CONNECTION_OK) {
		unreachable(PQerrorMessage(s->conn), e);
		connection_drop(s);
		return -1;
	}
	PQsetNoticeReceiver(s->conn, on_notice, NULL);
	if (schema_look(s, e) == 0)
		return 0;
	connection_drop(s);
	return -1;
}

int connection_ready(struct store *s, struct err *e)
{
	if (s->open && s->conn && PQtransactionStatus(s->conn) == PQTRANS_INTRANS)
		return 0;
	if (s->open)
		return err_set(e, ERR_BUSY, "the database was lost within a transaction");
	if (s->conn && (PQstatus(s->conn) != CONNECTION_OK ||
			PQtransactionStatus(s->conn) != PQTRANS_IDLE || said_goodbye(s->conn) ||
			was_migrated(s->conn)))
		connection_drop(s);
	return s->conn ? 0 : connect_now(s, e);
}

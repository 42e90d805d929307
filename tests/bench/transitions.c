/*
 * Fenced transitions a second through the store, beside the same statement sent
 * by bare libpq to tables of the same shape, and beside the plainest lease write
 * PostgreSQL can do: one row, one version check, one index, no log. In turns, one
 * machine, real fsync. `transitions CONNINFO` prints the three figures.
 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/image.h"
#include "store/sandbox.h"
#include "store/store.h"

#define THREADS  8
#define ROUNDS   3
#define ROUND_MS 2000
#define DATABASE "bench_transitions"

static char conninfo[1200];
static atomic_bool stop;
static atomic_ulong done;

static void die(const char *what)
{
	fprintf(stderr, "transitions: %s\n", what);
	exit(EXIT_FAILURE);
}

static void *ours(void *arg)
{
	struct store *s = NULL;
	struct sandbox sb;
	struct err e;
	char id[64];

	snprintf(id, sizeof(id), "sb_c1_%020d", (int)*(const int *)arg);
	if (store_open(conninfo, &s, &e) < 0 || store_sandbox_get(s, NULL, id, &sb, &e) < 0)
		die(e.msg);
	while (!stop) {
		bool ready = sb.state == SANDBOX_READY;
		struct sandbox_move m = {
			.id = id,
			.generation = 1,
			.version = sb.version,
			.from = sb.state,
			.to = ready ? SANDBOX_FALLING_ASLEEP : SANDBOX_READY,
			.event = ready ? "sleep" : "up",
			.deadline_ms = 45000,
		};

		if (store_sandbox_move(s, &m, &sb, &e) < 0)
			die(e.msg);
		done++;
	}
	store_close(s);
	return NULL;
}

#define SAME \
	"WITH moved AS (UPDATE bare_sandbox SET state = CASE state WHEN 'ready' THEN " \
	"'falling_asleep' ELSE 'ready' END, reason = '', version = version + 1, " \
	"deadline_at = now() + interval '45 s', stop_state = 'none', stop_attempt = 0, " \
	"stop_attempts = 0, stop_rechecks = 0 " \
	"WHERE id = lpad($1, 20, '0') AND generation = 1 AND version = $2::bigint RETURNING *), " \
	"told AS (INSERT INTO bare_event (sandbox_id, seq, event, from_state, to_state, reason, " \
	"attempt) SELECT id, version, 'up', state, state, '', 0 FROM moved) " \
	"SELECT version FROM moved"
#define PLAIN \
	"UPDATE lease SET version = version + 1, deadline_at = now() + interval '45 s' " \
	"WHERE id = $1::int AND version = $2::bigint RETURNING version"

static void *bare(int which, const char *sql)
{
	PGconn *conn = PQconnectdb(conninfo);
	char id[24], version[24];
	const char *values[] = { id, version };
	unsigned long n = 1;

	snprintf(id, sizeof(id), "%d", which);
	PQclear(PQprepare(conn, "w", sql, 2, NULL));
	while (!stop) {
		PGresult *res;

		snprintf(version, sizeof(version), "%lu", n);
		res = PQexecPrepared(conn, "w", 2, values, NULL, NULL, 0);
		if (PQntuples(res) == 1)
			n = strtoul(PQgetvalue(res, 0, 0), NULL, 10), done++;
		else
			n++; /* what an earlier round left */
		PQclear(res);
	}
	PQfinish(conn);
	return NULL;
}

static void *same(void *arg)
{
	return bare(*(const int *)arg, SAME);
}

static void *plain(void *arg)
{
	return bare(*(const int *)arg, PLAIN);
}

static double round_of(void *(*run)(void *))
{
	pthread_t threads[THREADS];
	int which[THREADS];
	struct timespec pause = { ROUND_MS / 1000, 0 };

	stop = false;
	done = 0;
	for (int i = 0; i < THREADS; i++) {
		which[i] = i;
		pthread_create(&threads[i], NULL, run, &which[i]);
	}
	nanosleep(&pause, NULL);
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return (double)done * 1000 / ROUND_MS;
}

static void raw(const char *where, const char *sql)
{
	PGconn *conn = PQconnectdb(where);
	PGresult *res = PQexec(conn, sql);

	if (PQresultStatus(res) != PGRES_COMMAND_OK)
		die(PQerrorMessage(conn));
	PQclear(res);
	PQfinish(conn);
}

static void prepare(void)
{
	struct sandbox_spec spec = SANDBOX_SPEC_DEFAULT;
	struct image image = { .name = "base", .digest = "d", .source = "bench" }, back;
	struct store *s = NULL;
	struct err e;
	char id[64];

	snprintf(spec.image, sizeof(spec.image), "base");
	snprintf(spec.runtime, sizeof(spec.runtime), "crun");
	if (store_open(conninfo, &s, &e) < 0 || store_migrate(s, &e) < 0 ||
	    store_image_put(s, &image, &back, &e) < 0)
		die(e.msg);
	for (int i = 0; i < THREADS; i++) {
		struct sandbox_intent intent = { .id = id, .owner = "ann", .host = "h1" };
		struct sandbox sb;

		intent.spec = &spec;
		intent.deadline_ms = 60000;
		snprintf(id, sizeof(id), "sb_c1_%020d", i);
		if (store_sandbox_insert(s, &intent, &sb, &e) < 0)
			die(e.msg);
	}
	store_close(s);
	raw(conninfo, "CREATE TABLE lease (id int PRIMARY KEY, version bigint, deadline_at "
		      "timestamptz)");
	raw(conninfo, "CREATE TABLE bare_sandbox (LIKE sandbox INCLUDING ALL)");
	raw(conninfo, "CREATE TABLE bare_event (LIKE sandbox_event INCLUDING ALL)");
	raw(conninfo, "INSERT INTO bare_sandbox SELECT * FROM sandbox");
	raw(conninfo, "UPDATE bare_sandbox SET id = right(id, 20)");
	raw(conninfo, "CREATE INDEX lease_due ON lease (deadline_at)");
	raw(conninfo, "INSERT INTO lease SELECT n, 1, now() FROM generate_series(0, 7) n");
}

int main(int argc, char **argv)
{
	double store = 0, equal = 0, lease = 0;

	if (argc != 2)
		die("usage: transitions CONNINFO");
	raw(argv[1], "CREATE DATABASE " DATABASE);
	snprintf(conninfo, sizeof(conninfo), "%s dbname=" DATABASE, argv[1]);
	prepare();
	for (int i = 0; i < ROUNDS; i++) {
		raw(conninfo, "UPDATE lease SET version = 1");
		raw(conninfo, "UPDATE bare_sandbox SET version = 1");
		raw(conninfo, "TRUNCATE bare_event");
		lease += round_of(plain) / ROUNDS;
		equal += round_of(same) / ROUNDS;
		store += round_of(ours) / ROUNDS;
	}
	raw(argv[1], "DROP DATABASE " DATABASE);
	printf("{\"value\": %.0f, \"same\": %.0f, \"lease\": %.0f}\n", store, equal, lease);
	return EXIT_SUCCESS;
}

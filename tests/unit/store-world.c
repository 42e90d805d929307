#include "store-world.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/time.h"
#include "test.h"

static char conninfo[64];

static PGconn *raw_open(const char *db)
{
	char text[64];
	PGconn *conn;

	snprintf(text, sizeof(text), "dbname=%s", db);
	conn = PQconnectdb(text);
	if (PQstatus(conn) != CONNECTION_OK)
		test_fail(__FILE__, __LINE__, "%s", PQerrorMessage(conn));
	return conn;
}

/* The first value of the first row, as a number. */
long raw(PGconn *conn, const char *sql)
{
	PGresult *res = PQexec(conn, sql);
	long n = 0;

	if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", sql, PQerrorMessage(conn));
	if (PQntuples(res) > 0)
		n = strtol(PQgetvalue(res, 0, 0), NULL, 10);
	PQclear(res);
	return n;
}

PGconn *fresh_database(void)
{
	PGconn *root = raw_open("postgres");
	char sql[80], name[48];

	/* A number of a process comes again on a busy machine. */
	snprintf(name, sizeof(name), "t%d_%llu", (int)getpid(),
		 (unsigned long long)time_mono_us());
	snprintf(sql, sizeof(sql), "CREATE DATABASE %s", name);
	raw(root, sql);
	PQfinish(root);
	snprintf(conninfo, sizeof(conninfo), "dbname=%s", name);
	return raw_open(name);
}

struct store *another(void)
{
	struct store *s = NULL;
	struct err e;

	CHECK_OK(store_open(conninfo, &s, &e), &e);
	return s;
}

void put_image(struct store *s, const char *name, const char *digest)
{
	struct image im = { .bytes = 7, .source = "import" }, back;
	struct err e;

	snprintf(im.name, sizeof(im.name), "%s", name);
	snprintf(im.digest, sizeof(im.digest), "%s", digest);
	CHECK_OK(store_image_put(s, &im, &back, &e), &e);
	CHECK_STR(back.digest, digest);
	CHECK(back.created_ms > 0);
}

struct world world_make(void)
{
	struct world w = { .sql = fresh_database() };
	struct err e;

	w.s = another();
	CHECK_OK(store_migrate(w.s, &e), &e);
	put_image(w.s, "base", D1);
	return w;
}

void world_done(struct world *w)
{
	store_close(w->s);
	PQfinish(w->sql);
}

int try_insert(struct store *s, const char *id, const char *owner, const char *image,
	       struct sandbox *ret, struct err *e)
{
	struct sandbox_spec spec = SANDBOX_SPEC_DEFAULT;
	struct sandbox_intent intent = {
		.id = id,
		.owner = owner,
		.host = "h1",
		.spec = &spec,
		.deadline_ms = 60000,
	};

	snprintf(spec.image, sizeof(spec.image), "%s", image);
	snprintf(spec.runtime, sizeof(spec.runtime), "crun");
	return store_sandbox_insert(s, &intent, ret, e);
}

struct sandbox add(struct store *s, const char *id, const char *owner)
{
	struct sandbox sb;
	struct err e;

	CHECK_OK(try_insert(s, id, owner, "base", &sb, &e), &e);
	return sb;
}

int try_move(struct store *s, const char *id, enum sandbox_state from,
	     enum sandbox_state to, struct err *e)
{
	struct sandbox_move m = {
		.id = id,
		.generation = 1,
		.from = from,
		.to = to,
		.deadline_ms = lifecycle_deadline_ms(to, 1),
	};
	struct sandbox sb;

	return store_sandbox_move(s, &m, &sb, e);
}

void on_row(const struct sandbox *sb, void *arg)
{
	struct seen *seen = arg;

	CHECK(seen->count < 8);
	seen->rows[seen->count++] = *sb;
}

void wait_for_a_waiter(PGconn *sql)
{
	for (int i = 0; i < 5000; i++) {
		if (raw(sql, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0)
			return;
		usleep(1000);
	}
	test_fail(__FILE__, __LINE__, "nobody came to wait");
}

void in_threads(void *(*run)(void *), void *arg)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, run, arg), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
}

/* What the tests of the store share: the real PostgreSQL of tests/tools/with-postgres,
 * a database per test, and a store on it with its schema and one image. */
#pragma once

#include <libpq-fe.h>
#include <pthread.h>

#include "store/image.h"
#include "store/sandbox.h"
#include "store/store.h"

#define D1      "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define D2      "sha256:2222222222222222222222222222222222222222222222222222222222222222"
#define ID(n)   "sb_c1_0000000000000000000" n
#define THREADS 6

#define ENDING(id_, generation_, receipt_) \
	&(struct sandbox_end) \
	{ \
		.id = (id_), .generation = (generation_), .receipt = (receipt_) \
	}

PGconn *fresh_database(void);

/* SQL beside the store under test: the first value of the first row, as a number. */
long raw(PGconn *conn, const char *sql);

struct world {
	PGconn *sql;
	struct store *s;
};
struct world world_make(void);
void world_done(struct world *w);
struct store *another(void); /* a further store on the database of this test */

void put_image(struct store *s, const char *name, const char *digest);
int try_insert(struct store *s, const char *id, const char *owner, const char *image,
	       struct sandbox *ret, struct err *e);
struct sandbox add(struct store *s, const char *id, const char *owner);
int try_move(struct store *s, const char *id, enum sandbox_state from, enum sandbox_state to,
	     struct err *e);

struct seen {
	int count;
	struct sandbox rows[8];
};
void on_row(const struct sandbox *sb, void *arg); /* arg: struct seen */

void wait_for_a_waiter(PGconn *sql); /* until somebody waits for a lock */
void in_threads(void *(*run)(void *), void *arg);

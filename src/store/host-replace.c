/* A lost host's sandboxes find another one, each where there is room for it. */
#include <string.h>

#include "lib/str.h"
#include "store/host.h"
#include "store/row.h"

#define DRAWN     8 /* hosts looked at for each; if none of them takes it, more are */
#define DRAWN_MAX 100

/* One that lost its host. */
struct homeless {
	char id[SANDBOX_ID_SIZE];
	uint64_t version;
	char state[24];
	char image_digest[IMAGE_DIGEST_SIZE];
	char runtime[SANDBOX_RUNTIME_SIZE];
	uint64_t memory_mb, disk_mb, cpu_milli, pids;
};

struct lost {
	char id[SANDBOX_HOST_SIZE];
};

/* clang-format off */
static const struct column lost_columns[] = {
	COLUMN(COLUMN_STR, lost, id),
	COLUMNS_END
};

static const struct column homeless_columns[] = {
	COLUMN(COLUMN_ID, homeless, id),
	COLUMN(COLUMN_U64, homeless, version),
	COLUMN(COLUMN_STR, homeless, state),
	COLUMN(COLUMN_STR, homeless, image_digest),
	COLUMN(COLUMN_STR, homeless, runtime),
	COLUMN(COLUMN_U64, homeless, memory_mb),
	COLUMN(COLUMN_U64, homeless, disk_mb),
	COLUMN(COLUMN_U64, homeless, cpu_milli),
	COLUMN(COLUMN_U64, homeless, pids),
	COLUMNS_END
};

static const struct column moved_columns[] = {
	COLUMN(COLUMN_ID, host_moved, sandbox),
	COLUMN(COLUMN_STR, host_moved, host),
	COLUMN(COLUMN_U64, host_moved, generation),
	COLUMNS_END
};

#define REPLACED "state NOT IN ('deleting', 'failed')"

/* Held until the end: it cannot come back in between, and one taker is at it at a time. */
static const struct statement hold = { "host-lost-hold",
	"SELECT id FROM host WHERE lost_at IS NOT NULL AND removed_at IS NULL "
	"AND EXISTS (SELECT 1 FROM sandbox s WHERE s.host = host.id AND s." REPLACED ") "
	"AND EXISTS (SELECT 1 FROM host me WHERE me.id = $1 AND me.epoch = $2 "
	"AND me.lost_at IS NULL AND me.removed_at IS NULL AND me.lease_until > now()) "
	"ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED" };
/* In no order: a sandbox there is no room for must not hold up the others. */
static const struct statement list = { "host-lost-sandboxes",
	"SELECT id, version, state, image_digest, runtime, memory_mb, disk_mb, cpu_milli, pids "
	"FROM sandbox WHERE host = $1 AND " REPLACED " ORDER BY random() LIMIT $2::bigint" };
static const struct statement move = { "host-lost-move",
	"WITH moved AS (UPDATE sandbox SET host = $3, generation = generation + 1, "
	"state = 'creating', version = version + 1, build_at = now(), "
	"reason = 'host ' || $4 || ' was lost: begun anew on ' || $3, "
	"deadline_at = " SQL_AFTER("$6") " WHERE id = $1 AND version = $2 AND host = $4 "
	"RETURNING id, host, generation, version, reason), "
	"told AS (INSERT INTO sandbox_event "
	"(sandbox_id, seq, event, from_state, to_state, reason, attempt) "
	"SELECT id, version, 'replaced', $5, 'creating', reason, 0 FROM moved) "
	"SELECT id AS sandbox, host, generation FROM moved" };
/* clang-format on */

/* Hosts that could take it; they come in no order, so the first two are any two. */
struct drawn {
	const struct host_share *share;
	const char *runtime;
	struct placement_host rooms[DRAWN_MAX];
	char ids[DRAWN_MAX][SANDBOX_HOST_SIZE];
	size_t count;
};

static void on_drawn(const struct host *h, void *arg)
{
	struct drawn *d = arg;

	if (d->count == DRAWN_MAX || !host_has_engine(&h->capacity, d->runtime))
		return;
	d->rooms[d->count] = host_room(h, d->share);
	memcpy(d->ids[d->count++], h->id, SANDBOX_HOST_SIZE);
}

struct replacing {
	struct store *s;
	const struct host_taker *by;
	const struct host_replacement *how;
	struct lost lost;
	int unreadable;
	struct err *first; /* why, of the first of them */
};

/* 1 with its host; 0: there is none. */
static int find_home(const struct replacing *r, const struct homeless *sb,
		     char ret[SANDBOX_HOST_SIZE], struct err *e)
{
	static const uint64_t any_two[2] = { 0, 0 };
	struct resources need = { .of = {
					  [RESOURCE_MEMORY_MB] = sb->memory_mb,
					  [RESOURCE_DISK_MB] = sb->disk_mb,
					  [RESOURCE_CPU_MILLI] = sb->cpu_milli,
					  [RESOURCE_PIDS] = sb->pids,
				  } };
	struct host_draw q = {
		.image = sb->image_digest,
		.self = r->by->id,
		.lives_ms = constant_ms(CONSTANT_HOST_FREEZE_BEFORE, r->by->divisor),
	};
	struct err full;
	size_t at;

	for (q.limit = DRAWN; q.limit <= DRAWN_MAX; q.limit += DRAWN_MAX - DRAWN) {
		cleanup(free_ptr) struct drawn *d = xcalloc(1, sizeof(*d));

		d->share = &r->how->share;
		d->runtime = sb->runtime;
		if (store_hosts_draw(r->s, &q, on_drawn, d, e) < 0)
			return -1;
		if (placement_choose(d->rooms, d->count, &need, any_two, &at, &full) == 0) {
			memcpy(ret, d->ids[at], SANDBOX_HOST_SIZE);
			return 1;
		}
	}
	return 0;
}

/* 1: moved; 0: it waits. */
static int replace_one(const struct replacing *r, const struct homeless *sb,
		       struct host_moved *ret, struct err *e)
{
	uint64_t deadline = lifecycle_deadline_ms(SANDBOX_CREATING, r->by->divisor);
	char home[SANDBOX_HOST_SIZE];
	int n = find_home(r, sb, home, e);

	if (n <= 0)
		return n;
	return store_run_one(r->s, &move,
			     ARGS(TEXT(sb->id), NUMBER(sb->version), TEXT(home),
				  TEXT(r->lost.id), TEXT(sb->state), NUMBER(deadline)),
			     moved_columns, ret, e);
}

/* How many were moved; -1: none was, the transaction is to be rolled back. */
static int replace_all(struct replacing *r, struct host_moved *moved, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	int count = 0, n;

	n = store_run_one(r->s, &hold, ARGS(TEXT(r->by->id), NUMBER(r->by->epoch)), lost_columns,
			  &r->lost, e);
	if (n <= 0)
		return n;
	if (store_run(r->s, &list, ARGS(TEXT(r->lost.id), NUMBER(r->how->limit)), &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct homeless sb = { 0 };
		struct err why;

		if (row_read(res, i, homeless_columns, &sb, &why) < 0) {
			if (r->unreadable++ == 0)
				*r->first = why;
			continue; /* it waits, and holds up no other */
		}
		n = replace_one(r, &sb, &moved[count], e);
		if (n < 0)
			return -1;
		count += n;
	}
	return count;
}

int store_hosts_replace(struct store *s, const struct host_taker *by,
			const struct host_replacement *how, host_moved_fn *on_row, void *arg,
			struct err *e)
{
	struct err first;
	struct replacing r = { .s = s, .by = by, .how = how, .first = &first };
	cleanup(free_ptr) struct host_moved *moved = xcalloc(how->limit, sizeof(*moved));
	int count;

	if (store_begin(s, e) < 0)
		return -1;
	count = replace_all(&r, moved, e);
	if (count <= 0)
		store_rollback(s);
	if (count < 0 || (count > 0 && store_commit(s, e) < 0))
		return -1;
	for (int i = 0; i < count; i++)
		on_row(&moved[i], arg);
	if (r.unreadable > 0)
		*e = first;
	return r.unreadable;
}

#include "store/host.h"

#include <string.h>

#include "store/sandbox-row.h"

/* clang-format off */
#define HOST_COLUMNS \
	"h.id, h.version, h.address, h.boot_id, h.epoch, " \
	"coalesce(" SQL_MS("h.lease_until") ", 0) AS lease_until_ms, " \
	"h.draining::int AS draining, coalesce(" SQL_MS("h.lost_at") ", 0) AS lost_ms, " \
	"coalesce(" SQL_MS("h.removed_at") ", 0) AS removed_ms, h.lost_to, " \
	"h.cpus AS \"capacity.cpus\", h.memory_mb AS \"capacity.memory_mb\", " \
	"h.memory_free_mb AS \"capacity.memory_free_mb\", h.disk_mb AS \"capacity.disk_mb\", " \
	"h.disk_free_mb AS \"capacity.disk_free_mb\", h.runtimes AS \"capacity.runtimes\", " \
	"h.open_files AS \"capacity.open_files\", " \
	"coalesce(p.sandboxes, 0) AS sandboxes, " \
	"coalesce(p.memory_mb, 0) AS promised_memory_mb, " \
	"coalesce(p.disk_mb, 0) AS promised_disk_mb, " \
	"coalesce(p.cpu_milli, 0) AS promised_cpu_milli, coalesce(p.pids, 0) AS promised_pids, " \
	SQL_MS("h.created_at") " AS created_ms, " SQL_MS("h.seen_at") " AS seen_ms, " \
	SQL_MS("now()") " AS read_ms"
/* What is promised is promised until its absence is proven. */
#define PROMISED \
	" LEFT JOIN (SELECT host, count(*) AS sandboxes, sum(memory_mb) AS memory_mb, " \
	"sum(disk_mb) AS disk_mb, sum(cpu_milli) AS cpu_milli, sum(pids) AS pids " \
	"FROM sandbox GROUP BY host) p ON p.host = h.id "
/* What was just written has no need of the sums. */
#define UNSUMMED \
	" LEFT JOIN (SELECT 0 AS sandboxes, 0 AS memory_mb, 0 AS disk_mb, 0 AS cpu_milli, " \
	"0 AS pids WHERE false) p ON true "
#define SQL_MARGIN(n) n "::bigint * interval '1 millisecond'"

static const struct column columns[] = {
	COLUMN(COLUMN_STR, host, id),
	COLUMN(COLUMN_STR, host, version),
	COLUMN(COLUMN_STR, host, address),
	COLUMN(COLUMN_STR, host, boot_id),
	COLUMN(COLUMN_U64, host, epoch),
	COLUMN(COLUMN_U64, host, lease_until_ms),
	COLUMN(COLUMN_U64, host, draining),
	COLUMN(COLUMN_U64, host, lost_ms),
	COLUMN(COLUMN_U64, host, removed_ms),
	COLUMN(COLUMN_STR, host, lost_to),
	COLUMN(COLUMN_U64, host, capacity.cpus),
	COLUMN(COLUMN_U64, host, capacity.memory_mb),
	COLUMN(COLUMN_U64, host, capacity.memory_free_mb),
	COLUMN(COLUMN_U64, host, capacity.disk_mb),
	COLUMN(COLUMN_U64, host, capacity.disk_free_mb),
	COLUMN(COLUMN_STR, host, capacity.runtimes),
	COLUMN(COLUMN_U64, host, capacity.open_files),
	COLUMN(COLUMN_U64, host, sandboxes),
	COLUMN(COLUMN_U64, host, promised_memory_mb),
	COLUMN(COLUMN_U64, host, promised_disk_mb),
	COLUMN(COLUMN_U64, host, promised_cpu_milli),
	COLUMN(COLUMN_U64, host, promised_pids),
	COLUMN(COLUMN_U64, host, created_ms),
	COLUMN(COLUMN_U64, host, seen_ms),
	COLUMN(COLUMN_U64, host, read_ms),
	COLUMNS_END
};

static const struct column late_columns[] = {
	COLUMN(COLUMN_STR, host_late, id),
	COLUMN(COLUMN_U64, host_late, epoch),
	COLUMN(COLUMN_U64, host_late, lease_until_ms),
	COLUMNS_END
};

static const struct column moved_columns[] = {
	COLUMN(COLUMN_ID, host_moved, sandbox),
	COLUMN(COLUMN_STR, host_moved, host),
	COLUMN(COLUMN_U64, host_moved, generation),
	COLUMNS_END
};

static const struct statement put = { "host-put",
	"INSERT INTO host (id, version, lease_until) VALUES ($1, $2, "
	"CASE WHEN $3::int = 1 THEN now() END) "
	"ON CONFLICT (id) DO UPDATE SET version = excluded.version, seen_at = now(), "
	"lease_until = CASE WHEN $3::int = 1 THEN coalesce(host.lease_until, now()) END "
	"WHERE $3::int = 1 OR (host.lost_at IS NULL AND host.removed_at IS NULL) RETURNING id" };
#define SAYS \
	"version = $2, address = coalesce($3, host.address), boot_id = $4, " \
	"lease_until = " SQL_AFTER("$5") ", " \
	"seen_at = now(), cpus = $6, memory_mb = $7, memory_free_mb = $8, disk_mb = $9, " \
	"disk_free_mb = $10, runtimes = $11, open_files = $13"
/* Another machine's lease under this name must be over, as for anybody who takes it. */
static const struct statement enlist = { "host-register",
	"WITH h AS (INSERT INTO host (id, version, address, boot_id, epoch, lease_until, cpus, "
	"memory_mb, memory_free_mb, disk_mb, disk_free_mb, runtimes, open_files) "
	"VALUES ($1, $2, coalesce($3, ''), $4, 1, " SQL_AFTER("$5") ", $6, $7, $8, $9, $10, $11, "
	"$13) "
	"ON CONFLICT (id) DO UPDATE SET " SAYS ", epoch = host.epoch + 1, lost_at = NULL, "
	"lost_to = '', removed_at = NULL, draining = host.draining AND host.removed_at IS NULL "
	"WHERE host.lease_until IS NULL OR host.epoch = 0 OR host.boot_id = $4 "
	"OR host.lost_at IS NOT NULL OR host.removed_at IS NOT NULL "
	"OR host.lease_until + " SQL_MARGIN("$12") " <= now() "
	"RETURNING *) SELECT " HOST_COLUMNS " FROM h" UNSUMMED };
static const struct statement renew = { "host-renew",
	"WITH h AS (UPDATE host SET " SAYS " WHERE id = $1 AND epoch = $12 AND epoch > 0 "
	"AND lost_at IS NULL AND removed_at IS NULL RETURNING *) "
	"SELECT " HOST_COLUMNS " FROM h" UNSUMMED };
static const struct statement get = { "host-get",
	"SELECT " HOST_COLUMNS " FROM host h" PROMISED "WHERE h.id = $1" };
static const struct statement list = { "host-list",
	"SELECT " HOST_COLUMNS " FROM host h" PROMISED "ORDER BY h.id" };
/* The sums only of those that were drawn. */
static const struct statement draw_some = { "hosts-draw",
	"WITH drawn AS (SELECT h.id FROM host h, image_copy c WHERE c.digest = "
	"coalesce((SELECT digest FROM image WHERE name = $1), $1) "
	"AND c.host = h.id AND NOT h.draining AND h.lost_at IS NULL AND h.removed_at IS NULL "
	"AND (h.lease_until > " SQL_AFTER("$5") " OR (h.lease_until IS NULL AND $5::bigint = 0)) "
	"AND (h.address <> '' OR h.id = $2) AND $4 IN ('', h.id) "
	"ORDER BY random() LIMIT $3::bigint) "
	"SELECT " HOST_COLUMNS " FROM drawn JOIN host h ON h.id = drawn.id LEFT JOIN LATERAL ("
	"SELECT count(*) AS sandboxes, sum(memory_mb) AS memory_mb, sum(disk_mb) AS disk_mb, "
	"sum(cpu_milli) AS cpu_milli, sum(pids) AS pids FROM sandbox WHERE host = h.id) p "
	"ON true" };
static const struct statement drain = { "host-drain",
	"WITH h AS (UPDATE host SET draining = $2::int = 1 WHERE id = $1 AND removed_at IS NULL "
	"RETURNING *) SELECT " HOST_COLUMNS " FROM h" PROMISED };
#define I_LIVE \
	"EXISTS (SELECT 1 FROM host me WHERE me.id = $1 AND me.epoch = $2 " \
	"AND me.lost_at IS NULL AND me.removed_at IS NULL AND me.lease_until > now())"
static const struct statement late = { "hosts-late",
	"SELECT id, epoch, " SQL_MS("lease_until") " AS lease_until_ms FROM host "
	"WHERE lost_at IS NULL AND removed_at IS NULL AND id <> $1 "
	"AND lease_until <= " SQL_AFTER("$2") " ORDER BY lease_until LIMIT $3::bigint" };
static const struct statement take = { "host-take",
	"UPDATE host SET epoch = epoch + 1, lost_at = now(), lost_to = $1 WHERE id IN ("
	"SELECT id FROM host WHERE id = $4 AND epoch = $5 AND " SQL_MS("lease_until") " = $6 "
	"AND lost_at IS NULL AND removed_at IS NULL "
	"AND lease_until <= now() - " SQL_MARGIN("$3") " AND id <> $1 AND " I_LIVE
	" FOR UPDATE SKIP LOCKED) RETURNING id" };
static const struct statement arrivals = { "host-arrivals",
	"UPDATE sandbox SET build_at = NULL WHERE id IN (SELECT id FROM sandbox "
	"WHERE host = $1 AND build_at <= now() LIMIT $2::bigint FOR UPDATE SKIP LOCKED) "
	"RETURNING id AS sandbox, host, generation" };
/* The sandboxes first: a host that still has some that must be replaced is not removed. */
static const struct statement remove_it = { "host-remove",
	"WITH h AS (UPDATE host SET removed_at = now(), epoch = epoch + 1, lease_until = NULL "
	"WHERE id = $1 AND removed_at IS NULL "
	"AND (lost_at IS NOT NULL OR lease_until <= now() - " SQL_MARGIN("$2") ") "
	"AND NOT EXISTS (SELECT 1 FROM sandbox s WHERE s.host = $1 "
	"AND s.state NOT IN ('deleting', 'failed')) RETURNING *), "
	"gone AS (DELETE FROM sandbox s USING h WHERE s.host = h.id RETURNING s.*), "
	"told AS (INSERT INTO sandbox_event "
	"(sandbox_id, seq, event, from_state, to_state, reason, attempt) "
	"SELECT id, version + 1, 'host_removed', state, 'gone', 'removed by ' || $4, stop_attempt "
	"FROM gone), "
	FREE_NETWORK("gone") ", " END_ALERTS("gone") ", "
	"of_host AS (UPDATE alert a SET ended_at = now() FROM h "
	"WHERE a.sandbox_id = '' AND a.host = h.id AND a.ended_at IS NULL), "
	"left_of AS (INSERT INTO tombstone (id, owner, host, generation, receipt) "
	"SELECT id, owner, host, generation, $3 FROM gone) "
	"SELECT " HOST_COLUMNS " FROM h" UNSUMMED };
/* clang-format on */

enum host_lease_state host_state(const struct host *h, unsigned divisor)
{
	struct host_sight sight = {
		.lease_until_ms = h->lease_until_ms ? h->lease_until_ms : NEVER,
		.now_ms = h->read_ms,
		.draining = h->draining,
		.lost = h->lost_ms,
		.removed = h->removed_ms,
	};

	return host_lease_seen(&sight, divisor);
}

struct limits host_most(const struct host_capacity *c)
{
	return (struct limits){ .of = {
					[LIMIT_MEMORY_MB] = (int64_t)c->memory_mb,
					[LIMIT_DISK_MB] = (int64_t)c->disk_mb,
					[LIMIT_CPU_MILLI] = (int64_t)c->cpus * 1000,
					[LIMIT_OPEN_FILES] = (int64_t)c->open_files,
				} };
}

bool host_has_engine(const struct host_capacity *c, const char *runtime)
{
	const char *words = c->runtimes; /* "crun runsc" */
	size_t len = strlen(runtime);

	for (const char *at = words; len > 0 && (at = strstr(at, runtime)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return !words[0] && !c->cpus;
}

int store_host_put(struct store *s, const char *id, const char *version, bool leased,
		   struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &put, ARGS(TEXT(id), TEXT(version), NUMBER(leased)), &res, e) < 0)
		return -1;
	if (PQntuples(res) > 0)
		return 0;
	err_set(e, ERR_CONFLICT, "host %.60s was taken over, or removed: what it ran may run "
				 "elsewhere",
		id);
	return err_fix(e, "Start it with lease = on: it kills what was taken over, and is a host "
			  "again.");
}

/* Each has a number of its own: the margin, or the epoch. */
static int claim_run(struct store *s, const struct statement *st, const struct host_claim *c,
		     uint64_t last, struct host *ret, struct err *e)
{
	static const struct host_capacity unknown;
	const struct host_capacity *has = c->capacity ? c->capacity : &unknown;
	struct host got = { 0 };
	int n = store_run_one(s, st,
			      ARGS(TEXT(c->id), TEXT(c->version), TEXT(c->address),
				   TEXT(c->boot_id),
				   NUMBER(constant_ms(CONSTANT_HOST_LEASE, c->divisor)),
				   NUMBER(has->cpus), NUMBER(has->memory_mb),
				   NUMBER(has->memory_free_mb), NUMBER(has->disk_mb),
				   NUMBER(has->disk_free_mb), TEXT(has->runtimes), NUMBER(last),
				   NUMBER(has->open_files)),
			      columns, &got, e);

	if (n > 0)
		*ret = got;
	return n;
}

int store_host_register(struct store *s, const struct host_claim *claim, struct host *ret,
			struct err *e)
{
	int n = claim_run(s, &enlist, claim, constant_ms(CONSTANT_HOST_MARGIN, claim->divisor), ret,
			  e);

	if (n == 0) {
		err_set(e, ERR_CONFLICT, "another machine holds the lease of host %s", claim->id);
		return err_fix(e, "Give every host a name of its own ('host' in berthd.conf). If "
				  "this machine was restarted, wait until the old lease is over.");
	}
	return n < 0 ? -1 : 0;
}

static int no_host(const char *id, struct err *e)
{
	err_set(e, ERR_NOT_FOUND, "no host %.60s", id);
	return err_fix(e, "'berth host ls' lists the hosts of this cell.");
}

int store_host_get(struct store *s, const char *id, struct host *ret, struct err *e)
{
	struct host got = { 0 };
	int n = store_run_one(s, &get, ARGS(TEXT(id)), columns, &got, e);

	if (n <= 0)
		return n < 0 ? -1 : no_host(id, e);
	*ret = got;
	return 0;
}

int store_host_renew(struct store *s, const struct host_claim *claim, struct host *ret,
		     struct err *e)
{
	int n = claim_run(s, &renew, claim, claim->epoch, ret, e);

	if (n != 0)
		return n;
	return store_host_get(s, claim->id, ret, e);
}

/* Run it and hand over each row, read as the columns say. */
static int each_host(struct store *s, const struct statement *st, struct args args,
		     host_fn *on_row, void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, st, args, &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct host got = { 0 };

		if (row_read(res, i, columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

static int each_moved(struct store *s, const struct statement *st, struct args args,
		      host_moved_fn *on_row, void *arg, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, st, args, &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct host_moved got = { 0 };

		if (row_read(res, i, moved_columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

int store_host_list(struct store *s, host_fn *on_row, void *arg, struct err *e)
{
	return each_host(s, &list, NO_ARGS, on_row, arg, e);
}

int store_host_drain(struct store *s, const char *id, bool draining, struct host *ret,
		     struct err *e)
{
	struct host got = { 0 };
	int n = store_run_one(s, &drain, ARGS(TEXT(id), NUMBER(draining)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return store_host_get(s, id, &got, e) < 0
			       ? -1
			       : err_set(e, ERR_CONFLICT, "host %s was removed", id);
	*ret = got;
	return 0;
}

int store_hosts_late(struct store *s, const struct host_taker *by, host_late_fn *on_row,
		     void *arg, struct err *e)
{
	uint64_t lease = constant_ms(CONSTANT_HOST_LEASE, by->divisor);
	uint64_t every = constant_ms(CONSTANT_HOST_RENEW, by->divisor);
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &late,
		      ARGS(TEXT(by->id), NUMBER(lease - every - every / 2), NUMBER(HOST_LATE_MAX)),
		      &res, e) < 0)
		return -1;
	for (int i = 0; i < PQntuples(res); i++) {
		struct host_late got = { 0 };

		if (row_read(res, i, late_columns, &got, e) < 0)
			return -1;
		on_row(&got, arg);
	}
	return 0;
}

int store_host_take(struct store *s, const struct host_taker *by, const struct host_late *seen,
		    struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	if (store_run(s, &take,
		      ARGS(TEXT(by->id), NUMBER(by->epoch),
			   NUMBER(constant_ms(CONSTANT_HOST_MARGIN, by->divisor)), TEXT(seen->id),
			   NUMBER(seen->epoch), NUMBER(seen->lease_until_ms)),
		      &res, e) < 0)
		return -1;
	return PQntuples(res);
}

int store_host_arrivals(struct store *s, const char *host, host_moved_fn *on_row, void *arg,
			struct err *e)
{
	return each_moved(s, &arrivals, ARGS(TEXT(host), NUMBER(HOST_ARRIVALS_MAX)), on_row, arg,
			  e);
}

/* It was not removed: was it before, does it live, or has it still something to replace? */
static int not_removed(struct store *s, const struct host_removal *r, struct host *ret,
		       struct err *e)
{
	struct host h = { 0 };

	if (store_host_get(s, r->id, &h, e) < 0)
		return -1;
	if (h.removed_ms) {
		*ret = h;
		return 0;
	}
	if (!h.lost_ms) {
		err_set(e, ERR_CONFLICT, "host %s is not lost: it is %s", r->id,
			host_lease_state_name(host_state(&h, r->divisor)));
		return err_fix(e, "Drain it, stop it, and wait until its lease is over.");
	}
	err_set(e, ERR_BUSY, "sandboxes of host %s wait to be begun anew elsewhere", r->id);
	return err_fix(e, "Another host must be live and not draining; then try again.");
}

int store_host_remove(struct store *s, const struct host_removal *r, struct host *ret,
		      struct err *e)
{
	struct host got = { 0 };
	int n = store_run_one(s, &remove_it,
			      ARGS(TEXT(r->id),
				   NUMBER(constant_ms(CONSTANT_HOST_MARGIN, r->divisor)),
				   TEXT(r->receipt), TEXT(r->by)),
			      columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return not_removed(s, r, ret, e);
	*ret = got;
	return 0;
}

int store_hosts_draw(struct store *s, const struct host_draw *q, host_fn *on_row, void *arg,
		     struct err *e)
{
	return each_host(s, &draw_some,
			 ARGS(TEXT(q->image), TEXT(q->self), NUMBER(q->limit),
			      TEXT(q->only ? q->only : ""), NUMBER(q->lives_ms)),
			 on_row, arg, e);
}

#define UNLIMITED (UINT64_MAX / 4096)

/* 0: it has not said yet, or it is not counted. */
static uint64_t promisable(uint64_t has, uint64_t times)
{
	return has == 0 || times == 0 || has > UNLIMITED / times ? UNLIMITED : has * times;
}

struct placement_host host_room(const struct host *h, const struct host_share *share)
{
	struct placement_host room = {
		.lease = { .state = HOST_LIVE },
		.sandboxes = (unsigned)h->sandboxes,
		.sandboxes_max = HOST_SANDBOXES_MAX,
		.disk_known = true,
		.disk_free_mb = UNLIMITED,
	};

	room.total.of[RESOURCE_MEMORY_MB] = promisable(h->capacity.memory_mb, share->memory);
	room.total.of[RESOURCE_DISK_MB] = promisable(h->capacity.disk_mb, share->disk);
	room.total.of[RESOURCE_CPU_MILLI] = promisable(h->capacity.cpus * 1000, share->cpu);
	room.total.of[RESOURCE_PIDS] = UNLIMITED;
	room.promised.of[RESOURCE_MEMORY_MB] = h->promised_memory_mb;
	room.promised.of[RESOURCE_DISK_MB] = h->promised_disk_mb;
	room.promised.of[RESOURCE_CPU_MILLI] = h->promised_cpu_milli;
	return room;
}

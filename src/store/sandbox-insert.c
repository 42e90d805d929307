/* The record of a new sandbox, and whether there is room for it. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/errno-map.h"
#include "store/idempotency-row.h"
#include "store/network.h"
#include "store/policy.h"
#include "store/sandbox-row.h"

/* clang-format off */
/*
 * The image's row is locked against a change until the sandbox is there: once a
 * name means another digest, no new sandbox can still come with the old one.
 */
#define TELL_CREATED TELL("version", "'create'", "''", "state", "''", "0", "made")
#define INSERT_FROM \
	"INSERT INTO sandbox (id, owner, image, image_digest, runtime, host, generation, state, " \
	LIMIT_COLUMNS ", deadline_at, name, identity_key, isolation, " \
	"profile, labels, env, sleep_after_ms, keep_alive, cap_subject, expires_at) " \
	"SELECT $1, $2, i.name, i.digest, $4, $5, 1, 'creating', " \
	LIMIT_VALUES("$6") ", " SQL_AFTER("$7") ", $8, $9, $10, " \
	"$11, $12::jsonb, $13, $14::bigint, $15::bigint = 1, $16, " \
	"CASE WHEN $17::bigint > 0 THEN " SQL_AFTER("$17") " END FROM "
static const struct statement insert = { "sandbox-insert",
	"WITH made AS (" INSERT_FROM "image i WHERE i.name = $3 FOR SHARE RETURNING *)" TELL_CREATED
	"SELECT " SANDBOX_COLUMNS " FROM made" };
/* The key is taken only if the image is there, and the sandbox made only if the key was free. */
static const struct statement insert_once = { "sandbox-insert-once",
	"WITH named AS (SELECT name, digest FROM image WHERE name = $3 FOR SHARE), "
	"taken AS (INSERT INTO idempotency (owner, key, request, body_hash, sandbox_id) "
	"SELECT $2, $18, $19, $20, $1 FROM named WHERE " IDEMPOTENCY_ROOM("$2")
	" ON CONFLICT (owner, key) DO NOTHING RETURNING key), "
	"made AS (" INSERT_FROM "named i, taken RETURNING *)" TELL_CREATED
	"SELECT " SANDBOX_COLUMNS " FROM made" };
/* A create that counts holds the row until it has added its own: two never see the same room. */
static const struct statement cap_lock = { "cap-lock",
	"INSERT INTO cap (subject) VALUES ($1) "
	"ON CONFLICT (subject) DO UPDATE SET locked_at = now()" };
static const struct statement cap_count = { "cap-count",
	"SELECT count(*) AS n FROM sandbox WHERE cap_subject = $1" };
static const struct statement host_lock = { "host-lock",
	"SELECT draining::int AS draining FROM host WHERE id = $1 FOR NO KEY UPDATE" };
/* What is promised is promised until its absence is proven: the record is the reservation. */
static const struct statement promised = { "host-promised",
	"SELECT count(*) AS n, coalesce(sum(memory_mb), 0) AS memory_mb, "
	"coalesce(sum(disk_mb), 0) AS disk_mb, coalesce(sum(cpu_milli), 0) AS cpu_milli, "
	"coalesce(sum(pids), 0) AS pids FROM sandbox WHERE host = $1" };
/*
 * What ends by itself: what rests until it falls asleep or is over, and what is deleted. One that
 * falls asleep gives memory back, and no promise.
 */
static const struct statement soonest = { "room-soonest",
	"SELECT coalesce(min(greatest(0, " SQL_MS("deadline_at") " - " SQL_MS("now()") ")), "
	"9223372036854775807) AS ms FROM sandbox WHERE ($1::text IS NULL OR host = $1) "
	"AND deadline_at IS NOT NULL AND state NOT IN ('creating', 'waking')" };
/* clang-format on */

struct sums {
	uint64_t n, memory_mb, disk_mb, cpu_milli, pids;
};

static const struct column count_columns[] = {
	COLUMN(COLUMN_U64, sums, n),
	COLUMNS_END
};

static const struct column sums_columns[] = {
	COLUMN(COLUMN_U64, sums, n),
	COLUMN(COLUMN_U64, sums, memory_mb),
	COLUMN(COLUMN_U64, sums, disk_mb),
	COLUMN(COLUMN_U64, sums, cpu_milli),
	COLUMN(COLUMN_U64, sums, pids),
	COLUMNS_END
};

struct locked_host {
	uint64_t draining;
};

static const struct column locked_columns[] = {
	COLUMN(COLUMN_U64, locked_host, draining),
	COLUMNS_END
};

struct soonest {
	uint64_t ms;
};

static const struct column soonest_columns[] = {
	COLUMN(COLUMN_U64, soonest, ms),
	COLUMNS_END
};

int store_room_retry(struct store *s, const char *host, struct err *why)
{
	struct soonest at = { 0 };
	struct err ignored; /* what is short is the answer */

	if (store_run_one(s, &soonest, ARGS(TEXT(host)), soonest_columns, &at, &ignored) <= 0)
		return -1;
	return err_retry(why, placement_retry_s(at.ms));
}

static int no_image(const char *name, struct err *e)
{
	err_set(e, ERR_NOT_FOUND, "no image \"%.100s\"", name);
	return err_fix(e, "'berth image ls' lists the images there are; 'berth image pull' or "
			  "'berth image import' gets another.");
}

/* Nothing was written: because of the key, because of its owner's others, or of the image? */
static int why_not(struct store *s, const struct sandbox_intent *intent, struct err *e)
{
	struct idempotency first;
	struct err why;

	if (!intent->use)
		return no_image(intent->spec->image, e);
	if (store_idempotency_get(s, intent->use, &first, &why) == 0 || why.code == ERR_CONFLICT)
		return 1;
	if (why.code == ERR_NOT_FOUND)
		return store_idempotency_room(s, intent->owner, e) < 0
			       ? -1
			       : no_image(intent->spec->image, e);
	*e = why;
	return -1;
}

static int lock_cap(struct store *s, const char *subject, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &cap_lock, ARGS(TEXT(subject)), &res, e);
}

/* Until the transaction ends. A host without a row is none that drains. */
static int lock_host(struct store *s, const char *id, struct locked_host *ret, struct err *e)
{
	*ret = (struct locked_host){ 0 };
	return store_run_one(s, &host_lock, ARGS(TEXT(id)), locked_columns, ret, e) < 0 ? -1 : 0;
}

static int check_cap(struct store *s, const struct sandbox_spec *spec, struct err *e)
{
	struct sums have = { 0 };

	if (!spec->cap_subject[0])
		return 0;
	if (lock_cap(s, spec->cap_subject, e) < 0 ||
	    store_run_one(s, &cap_count, ARGS(TEXT(spec->cap_subject)), count_columns, &have, e) <
		    0)
		return -1;
	if (have.n < (uint64_t)spec->cap)
		return 0;
	err_set(e, ERR_LIMIT,
		"sandbox_limit_reached: %.200s has %" PRIu64 " sandboxes, its limit is %" PRId64,
		spec->cap_subject, have.n, spec->cap);
	return err_fix(e, "Delete one that is no longer needed; asleep and failed ones count too.");
}

static uint64_t growth(const struct limits *from, const struct limits *to, enum limit l)
{
	return to->of[l] > from->of[l] ? (uint64_t)(to->of[l] - from->of[l]) : 0;
}

struct resources sandbox_need(const struct limits *from, const struct limits *to)
{
	return (struct resources){ .of = {
					   [RESOURCE_MEMORY_MB] = growth(from, to, LIMIT_MEMORY_MB),
					   [RESOURCE_DISK_MB] = growth(from, to, LIMIT_DISK_MB),
					   [RESOURCE_CPU_MILLI] = growth(from, to, LIMIT_CPU_MILLI),
					   [RESOURCE_PIDS] = growth(from, to, LIMIT_PIDS),
				   } };
}

static int admit_locked(struct store *s, const char *host, const struct placement_host *room,
			const struct resources *need, struct err *e)
{
	struct placement_host h = *room;
	struct sums have = { 0 };

	if (store_run_one(s, &promised, ARGS(TEXT(host)), sums_columns, &have, e) < 0)
		return -1;
	h.sandboxes = have.n > UINT32_MAX ? UINT32_MAX : (unsigned)have.n;
	h.promised.of[RESOURCE_MEMORY_MB] = have.memory_mb;
	h.promised.of[RESOURCE_DISK_MB] = have.disk_mb;
	h.promised.of[RESOURCE_CPU_MILLI] = have.cpu_milli;
	h.promised.of[RESOURCE_PIDS] = have.pids;
	if (placement_admit(&h, need, e) == 0)
		return 0;
	err_wrap(e, "host %s has no room", host);
	err_fix(e, "Delete what is no longer needed, or try again later.");
	(void)store_room_retry(s, host, e);
	return 1;
}

int sandbox_admit(struct store *s, const char *host, const struct placement_host *room,
		  const struct resources *need, struct err *e)
{
	struct locked_host locked;

	return lock_host(s, host, &locked, e) < 0 ? -1 : admit_locked(s, host, room, need, e);
}

static int draining(const char *host, struct err *e)
{
	err_set(e, ERR_BUSY, "host %s is draining: it takes no new sandboxes", host);
	err_reason(e, REASON_HOST_DRAINING, 0);
	return err_fix(e, "An admin ends that with 'berth host undrain %s'.", host);
}

/* What a host that drains has may still grow and wake; nothing new is made there. */
static int check_room(struct store *s, const struct sandbox_intent *intent, struct err *e)
{
	struct limits nothing = { 0 };
	struct locked_host locked;
	struct resources need;
	int n;

	if (!intent->room)
		return 0;
	if (lock_host(s, intent->host, &locked, e) < 0)
		return -1;
	if (locked.draining)
		return draining(intent->host, e);
	need = sandbox_need(&nothing, &intent->spec->limits);
	n = admit_locked(s, intent->host, intent->room, &need, e);
	if (n > 0 && intent->full)
		*intent->full = true;
	return n ? -1 : 0;
}

/* 1: written; 0: not, because of the key or the image. */
static int insert_row(struct store *s, const struct sandbox_intent *intent, struct sandbox *ret,
		      struct err *e)
{
	const struct sandbox_spec *spec = intent->spec;
	const struct idempotency_use *use = intent->use;
	char limits[LIMITS_TEXT_SIZE];
	struct args args = ARGS(
		TEXT(intent->id), TEXT(intent->owner), TEXT(spec->image), TEXT(spec->runtime),
		TEXT(intent->host), TEXT(limits_text(&spec->limits, limits)),
		NUMBER(intent->deadline_ms),
		TEXT(spec->name), TEXT(spec->identity_key),
		TEXT(policy_isolation_name(spec->isolation)), TEXT(spec->profile),
		TEXT(spec->labels[0] ? spec->labels : "{}"), TEXT(spec->env[0] ? spec->env : "{}"),
		NUMBER(spec->sleep_after_ms), NUMBER(spec->keep_alive), TEXT(spec->cap_subject),
		NUMBER(spec->lifetime_ms), TEXT(use ? use->key : NULL),
		TEXT(use ? use->request : NULL), TEXT(use ? use->body_hash : NULL));

	args.len -= use ? 0 : 3; /* the plain statement has no place for them */
	return store_run_one(s, use ? &insert_once : &insert, args, sandbox_columns, ret, e);
}

static int write_network(struct store *s, const struct sandbox_intent *intent, struct err *e)
{
	cleanup(free_ptr) struct network_row *row = xcalloc(1, sizeof(*row));
	struct network_put put = { intent->id, intent->owner, intent->network, false };

	return intent->network ? store_network_put(s, &put, row, e) : 0;
}

static int write_session(struct store *s, const struct sandbox_intent *intent, struct err *e)
{
	struct agent_session holds;

	if (!intent->decided)
		return 0;
	if (store_session_put(s, intent->owner, intent->session, intent->decided, &holds, e) < 0)
		return -1;
	if (!session_is_decided_so(&holds, intent->decided))
		return err_set(e, ERR_CONFLICT, "another decision was faster");
	return 0;
}

static int insert_admitted(struct store *s, const struct sandbox_intent *intent,
			   struct sandbox *ret, struct err *e)
{
	int n;

	if (store_begin(s, e) < 0)
		return -1;
	if (check_cap(s, intent->spec, e) < 0 || check_room(s, intent, e) < 0) {
		store_rollback(s);
		return -1;
	}
	n = insert_row(s, intent, ret, e);
	if (n > 0 && (write_network(s, intent, e) < 0 || write_session(s, intent, e) < 0))
		n = -1;
	if (n <= 0) {
		store_rollback(s);
		return n;
	}
	return store_commit(s, e) < 0 ? -1 : n;
}

/* What would not be read back is not written. */
static int ids_check(const struct sandbox_intent *intent, struct err *e)
{
	const char *key = intent->spec->identity_key;
	enum identity_kind kind;

	if (sandbox_id_check(intent->id, e) < 0)
		return -1;
	return key[0] ? identity_key_check(key, &kind, e) : 0;
}

int store_sandbox_insert(struct store *s, const struct sandbox_intent *intent,
			 struct sandbox *ret, struct err *e)
{
	bool several = intent->room || intent->spec->cap_subject[0] || intent->network ||
		       intent->decided;
	struct sandbox got = { 0 };
	int n;

	if (ids_check(intent, e) < 0)
		return -1;
	n = several ? insert_admitted(s, intent, &got, e) : insert_row(s, intent, &got, e);
	if (n < 0 && e->code == ERR_CONFLICT)
		return err_set(e, ERR_CONFLICT, "sandbox %.60s exists already, or its name or "
						"identity does",
			       intent->id);
	if (n < 0)
		return -1;
	if (n == 0)
		return why_not(s, intent, e);
	*ret = got;
	return 0;
}

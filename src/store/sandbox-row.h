/* Sandboxes as rows, for this room only: the columns, and how a change of one is told. */
#pragma once

#include "store/limit-row.h"
#include "store/rows.h"
#include "store/sandbox.h"

/* clang-format off */
/* Of one that was abandoned the image is not known: what stands there only holds the reference. */
#define SANDBOX_COLUMNS \
	"id, owner, CASE WHEN image_digest = '' THEN '' ELSE image END AS image, image_digest, " \
	"runtime, host, generation, state, " \
	LIMIT_COLUMNS ", limits_pending, " SQL_MS("created_at") " AS created_ms, " \
	"version, reason, " SQL_MS("now()") " AS read_ms, stop_state AS \"stop.state\", " \
	"stop_attempt AS \"stop.attempt\", stop_attempts AS \"stop.attempts\", " \
	"stop_rechecks AS \"stop.rechecks\", reason AS \"stop.last_error\", " \
	"coalesce(" SQL_MS("deadline_at") ", 0) AS \"stop.next_ms\", " \
	"coalesce(" SQL_MS("deadline_at") ", 0) AS \"stop.deadline_ms\", " \
	"name, identity_key, isolation, profile, labels::text AS labels, env, sleep_after_ms, " \
	"keep_alive, coalesce(" SQL_MS("expires_at") ", 0) AS expires_ms, " \
	SQL_MS("last_used_at") " AS last_used_ms, " \
	"coalesce(" SQL_MS("busy_since") ", 0) AS busy_ms, " \
	"coalesce(" SQL_MS("failed_at") ", 0) AS failed_ms, failed_why, files_kept, " \
	"coalesce((SELECT n.mode FROM sandbox_network n WHERE n.sandbox_id = id), 'none') " \
	"AS network_mode, guest_version AS \"guest.guest\", guest_compared AS \"guest.host\""
/* A tombstone read as a sandbox: the same columns, what it does not know is empty. */
#define GONE_COLUMNS \
	"id, owner, '', '', '', host, generation, 'gone', " \
	LIMIT_NOTHING ", false, 0, 0, '', " \
	SQL_MS("now()") ", 'none', 0, 0, 0, '', 0, 0, '', '', '', '', '{}', '{}', 0, false, 0, " \
	"0, 0, 0, '', false, 'none', 0, 0"
/* What was written is told in the same statement: "WITH ", "did AS (... RETURNING *)", this. */
#define TELL(version, event, from, to, reason, attempt, did) \
	", told AS (INSERT INTO sandbox_event " \
	"(sandbox_id, seq, event, from_state, to_state, reason, attempt) " \
	"SELECT id, " version ", " event ", " from ", " to ", " reason ", " attempt \
	" FROM " did ") "
/* The network policies of those that are erased: only what was counted stays, for the usage. */
#define COUNTED "n.connections + n.requests + n.bytes_out + n.bytes_in"
#define FREE_NETWORK(did) \
	"freed AS (DELETE FROM sandbox_network n USING " did \
	" WHERE n.sandbox_id = " did ".id AND " COUNTED " = 0), " \
	"reduced AS (UPDATE sandbox_network n SET policy = '{\"mode\":\"none\"}' FROM " did \
	" WHERE n.sandbox_id = " did ".id AND " COUNTED " > 0)"
/* What is gone needs no person any more. */
#define END_ALERTS(did) \
	"ended AS (UPDATE alert a SET ended_at = now() FROM " did \
	" WHERE a.sandbox_id = " did ".id AND a.ended_at IS NULL)"
/* clang-format on */

extern const struct column sandbox_columns[];

must_check int sandbox_limit_check(uint32_t limit, struct err *e);

/* What one set of limits asks for beyond another. */
struct resources sandbox_need(const struct limits *from, const struct limits *to);

/* In a transaction: has the host so much more? 1 with the error if not. */
must_check int sandbox_admit(struct store *s, const char *host, const struct placement_host *room,
			     const struct resources *need, struct err *e);

#include "store/idempotency.h"

#include <stdio.h>
#include <string.h>

#include "store/idempotency-row.h"
#include "store/row.h"

/* clang-format off */
static const struct column columns[] = {
	COLUMN(COLUMN_STR, idempotency, request),
	COLUMN(COLUMN_STR, idempotency, body_hash),
	COLUMN(COLUMN_STR, idempotency, sandbox_id),
	COLUMN(COLUMN_U64, idempotency, status),
	COLUMN(COLUMN_STR, idempotency, response),
	COLUMNS_END
};

struct claimed {
	bool room, taken;
};

static const struct column claimed_columns[] = {
	COLUMN(COLUMN_BOOL, claimed, room),
	COLUMN(COLUMN_BOOL, claimed, taken),
	COLUMNS_END
};

static const struct column room_columns[] = {
	COLUMN(COLUMN_BOOL, claimed, room),
	COLUMNS_END
};

static const struct statement get = { "idempotency-get",
	"SELECT request, body_hash, sandbox_id, coalesce(status, 0) AS status, "
	"coalesce(response, '') AS response FROM idempotency WHERE owner = $1 AND key = $2" };
static const struct statement room = { "idempotency-room",
	"SELECT " IDEMPOTENCY_ROOM("$1") " AS room" };
static const struct statement claim = { "idempotency-claim",
	"WITH may AS (SELECT " IDEMPOTENCY_ROOM("$1") " AS room), "
	"taken AS (INSERT INTO idempotency "
	"(owner, key, request, body_hash, sandbox_id, status, response) "
	"SELECT $1, $2, $3, $4, $5, nullif($6::int, 0), CASE WHEN $6::int > 0 THEN '' END "
	"FROM may WHERE room ON CONFLICT (owner, key) DO NOTHING RETURNING key) "
	"SELECT room, EXISTS (SELECT FROM taken) AS taken FROM may" };
static const struct statement answer = { "idempotency-answer",
	"UPDATE idempotency SET status = $3::integer, response = $4 "
	"WHERE owner = $1 AND key = $2 AND status IS NULL" };
static const struct statement release = { "idempotency-release",
	"DELETE FROM idempotency WHERE owner = $1 AND key = $2 AND request = $3 "
	"AND body_hash = $4 AND status IS NULL" };
/* clang-format on */

int store_idempotency_get(struct store *s, const struct idempotency_use *use,
			  struct idempotency *ret, struct err *e)
{
	struct idempotency got = { 0 };
	int n = store_run_one(s, &get, ARGS(TEXT(use->owner), TEXT(use->key)), columns, &got, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_NOT_FOUND, "this Idempotency-Key was not used yet");
	if (strcmp(got.request, use->request) != 0 || strcmp(got.body_hash, use->body_hash) != 0) {
		err_set(e, ERR_CONFLICT, "this Idempotency-Key was used before, for another %s",
			strcmp(got.request, use->request) != 0 ? "request" : "body");
		return err_fix(e, "Repeat a request with exactly the same bytes; give a new one a "
				  "new key.");
	}
	*ret = got;
	return 0;
}

static int full(struct err *e)
{
	err_set(e, ERR_LIMIT, "%d Idempotency-Keys of this owner are kept, and no more will be",
		STORE_IDEMPOTENCY_MAX);
	(void)err_reason(e, STORE_IDEMPOTENCY_FULL, 0);
	return err_fix(e, "Send it without a key, or wait: keys are free again after the time of "
			  "the setting retention_idempotency.");
}

int store_idempotency_room(struct store *s, const char *owner, struct err *e)
{
	struct claimed got = { 0 };

	if (store_run_one(s, &room, ARGS(TEXT(owner)), room_columns, &got, e) < 0)
		return -1;
	return got.room ? 0 : full(e);
}

/*
 * Who finds it taken looks with a second statement: the row may have been
 * committed after the moment the first one sees.
 */
static int take(struct store *s, const struct idempotency_use *use, const char *sandbox_id,
		unsigned status, bool *again, struct err *e)
{
	struct claimed got = { 0 };
	struct idempotency first;

	if (store_run_one(s, &claim,
			  ARGS(TEXT(use->owner), TEXT(use->key), TEXT(use->request),
			       TEXT(use->body_hash), TEXT(sandbox_id), NUMBER(status)),
			  claimed_columns, &got, e) < 0)
		return -1;
	if (!got.taken && store_idempotency_get(s, use, &first, e) < 0)
		return e->code == ERR_NOT_FOUND && !got.room ? full(e) : -1;
	*again = !got.taken;
	return 0;
}

int store_idempotency_claim(struct store *s, const struct idempotency_use *use,
			    const char *sandbox_id, bool *again, struct err *e)
{
	struct idempotency first;

	if (take(s, use, sandbox_id, 0, again, e) < 0)
		return -1;
	if (!*again)
		return 0;
	if (store_idempotency_get(s, use, &first, e) < 0)
		return -1;
	if (strcmp(first.sandbox_id, sandbox_id) == 0)
		return 0;
	err_set(e, ERR_CONFLICT, "this Idempotency-Key was used before, for %s, which had the name",
		first.sandbox_id);
	return err_fix(e, "Give a request for another sandbox a new key.");
}

int store_idempotency_found(struct store *s, const struct idempotency_use *use,
			    const char *sandbox_id, struct err *e)
{
	bool again;

	return take(s, use, sandbox_id, 200, &again, e);
}

int store_idempotency_answer(struct store *s, const struct idempotency_use *use, int status,
			     const char *response, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;
	char number[16];

	snprintf(number, sizeof(number), "%d", status);
	return store_run(s, &answer,
			 ARGS(TEXT(use->owner), TEXT(use->key), TEXT(number), TEXT(response)),
			 &res, e);
}

int store_idempotency_release(struct store *s, const struct idempotency_use *use, struct err *e)
{
	cleanup(result_clear) PGresult *res = NULL;

	return store_run(s, &release,
			 ARGS(TEXT(use->owner), TEXT(use->key), TEXT(use->request),
			      TEXT(use->body_hash)),
			 &res, e);
}

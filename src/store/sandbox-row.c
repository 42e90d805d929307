#include "store/sandbox-row.h"

#include "lib/str.h"

static bool read_state(const char *text, void *at)
{
	return sandbox_state_by_name(text, at);
}

static bool read_stop_state(const char *text, void *at)
{
	*(enum stop_state *)at = stop_state_by_name(text);
	return true;
}

static bool read_isolation(const char *text, void *at)
{
	return policy_isolation_by_name(text, at);
}

static bool read_count(const char *text, void *at)
{
	struct err ignored;
	uint64_t n;

	if (str_u64(text, &n, &ignored) < 0 || n > UINT32_MAX)
		return false;
	*(unsigned *)at = (unsigned)n;
	return true;
}

const struct column sandbox_columns[] = {
	COLUMN(COLUMN_ID, sandbox, id),
	COLUMN(COLUMN_STR, sandbox, owner),
	COLUMN(COLUMN_STR, sandbox, image),
	COLUMN(COLUMN_STR, sandbox, image_digest),
	COLUMN(COLUMN_STR, sandbox, runtime),
	COLUMN(COLUMN_STR, sandbox, host),
	COLUMN(COLUMN_U64, sandbox, generation),
	COLUMN(COLUMN_WORD, sandbox, state, .read = read_state),
	LIMIT_COLUMN_ROWS(sandbox),
	COLUMN(COLUMN_BOOL, sandbox, limits_pending),
	COLUMN(COLUMN_U64, sandbox, created_ms),
	COLUMN(COLUMN_U64, sandbox, version),
	COLUMN(COLUMN_STR, sandbox, reason),
	COLUMN(COLUMN_U64, sandbox, read_ms),
	COLUMN(COLUMN_WORD, sandbox, stop.state, .read = read_stop_state),
	COLUMN(COLUMN_U64, sandbox, stop.attempt),
	COLUMN(COLUMN_WORD, sandbox, stop.attempts, .read = read_count),
	COLUMN(COLUMN_WORD, sandbox, stop.rechecks, .read = read_count),
	COLUMN(COLUMN_STR, sandbox, stop.last_error),
	COLUMN(COLUMN_U64, sandbox, stop.next_ms),
	COLUMN(COLUMN_U64, sandbox, stop.deadline_ms),
	COLUMN(COLUMN_STR, sandbox, name),
	COLUMN(COLUMN_KEY, sandbox, identity_key),
	COLUMN(COLUMN_WORD, sandbox, isolation, .read = read_isolation),
	COLUMN(COLUMN_STR, sandbox, profile),
	COLUMN(COLUMN_STR, sandbox, labels),
	COLUMN(COLUMN_STR, sandbox, env),
	COLUMN(COLUMN_U64, sandbox, sleep_after_ms),
	COLUMN(COLUMN_BOOL, sandbox, keep_alive),
	COLUMN(COLUMN_U64, sandbox, expires_ms),
	COLUMN(COLUMN_U64, sandbox, last_used_ms),
	COLUMN(COLUMN_U64, sandbox, busy_ms),
	COLUMN(COLUMN_U64, sandbox, failed_ms),
	COLUMN(COLUMN_STR, sandbox, failed_why),
	COLUMN(COLUMN_BOOL, sandbox, files_kept),
	COLUMN(COLUMN_STR, sandbox, network_mode),
	COLUMN(COLUMN_WORD, sandbox, guest.guest, .read = read_count),
	COLUMN(COLUMN_WORD, sandbox, guest.host, .read = read_count),
	COLUMNS_END
};

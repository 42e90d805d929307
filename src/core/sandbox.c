#include "core/sandbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CELL_CHARS   "abcdefghijklmnopqrstuvwxyz0123456789"
#define RANDOM_CHARS "0123456789abcdefghijklmnopqrstuv"

static const char *const runtimes[] = { "crun", "runsc" };

int sandbox_runtime_check(const char *runtime, struct err *e)
{
	for (size_t i = 0; i < array_len(runtimes); i++)
		if (strcmp(runtimes[i], runtime) == 0)
			return 0;
	return err_set(e, ERR_INVALID, "runtime must be \"crun\" or \"runsc\", not \"%.20s\"",
		       runtime);
}

int sandbox_spec_check(const struct sandbox_spec *spec, struct err *e)
{
	if (image_name_check(spec->image, e) < 0)
		return -1;
	if (spec->runtime[0] && sandbox_runtime_check(spec->runtime, e) < 0)
		return -1;
	if (limits_check(&spec->limits, true, e) < 0)
		return -1;
	if (spec->name[0] && sandbox_name_check(spec->name, e) < 0)
		return -1;
	if (sandbox_lifetime_check(spec->lifetime_ms, e) < 0)
		return -1;
	return sandbox_sleep_check(spec->sleep_after_ms, e);
}

int sandbox_lifetime_check(int64_t ms, struct err *e)
{
	if (ms == 0 || (ms >= SANDBOX_LIFETIME_MS_MIN && ms <= SANDBOX_LIFETIME_MS_MAX))
		return 0;
	return err_set(e, ERR_INVALID, "lifetime_ms must be 0 (no end), or %d to %" PRId64,
		       SANDBOX_LIFETIME_MS_MIN, (int64_t)SANDBOX_LIFETIME_MS_MAX);
}

int sandbox_sleep_check(int64_t ms, struct err *e)
{
	if (ms == 0 || (ms >= SANDBOX_SLEEP_MS_MIN && ms <= SANDBOX_SLEEP_MS_MAX))
		return 0;
	return err_set(e, ERR_INVALID, "sleep_after_ms must be 0 (never), or %d to %" PRId64,
		       SANDBOX_SLEEP_MS_MIN, (int64_t)SANDBOX_SLEEP_MS_MAX);
}

static size_t cell_len(const char *s)
{
	return strspn(s, CELL_CHARS);
}

int sandbox_cell_check(const char *cell, struct err *e)
{
	size_t len = cell_len(cell);

	if (len == 0 || len > SANDBOX_CELL_MAX || cell[len])
		return err_set(e, ERR_INVALID, "a cell is 1 to %d of a-z and 0-9, not \"%.20s\"",
			       SANDBOX_CELL_MAX, cell);
	return 0;
}

static bool is_id(const char *id)
{
	const char *cell = id + 3, *random;
	size_t len;

	if (strncmp(id, "sb_", 3) != 0)
		return false;
	len = cell_len(cell);
	if (len == 0 || len > SANDBOX_CELL_MAX || cell[len] != '_')
		return false;
	random = cell + len + 1;
	return strspn(random, RANDOM_CHARS) == ID_RANDOM_CHARS && !random[ID_RANDOM_CHARS];
}

int sandbox_id_check(const char *id, struct err *e)
{
	if (!is_id(id))
		return err_set(e, ERR_INVALID, "not a sandbox id: \"%.60s\"", id);
	return 0;
}

int sandbox_address_check(const char *text, enum sandbox_address *ret, struct err *e)
{
	enum identity_kind kind;
	struct err ignored;

	if (is_id(text))
		*ret = ADDRESS_ID;
	else if (identity_key_check(text, &kind, &ignored) == 0)
		*ret = ADDRESS_KEY;
	else if (strncmp(text, "sb_", 3) != 0 && identity_name_check(text, &ignored) == 0)
		*ret = ADDRESS_NAME;
	else
		return err_set(e, ERR_INVALID, "not a sandbox id, identity key or name: \"%.60s\"",
			       text);
	return 0;
}

int sandbox_name_check(const char *name, struct err *e)
{
	enum sandbox_address kind = ADDRESS_ID;

	if (identity_name_check(name, e) < 0)
		return -1;
	if (sandbox_address_check(name, &kind, e) == 0 && kind == ADDRESS_NAME)
		return 0;
	return err_set(e, ERR_INVALID, "the name \"%s\" reads like an id or an identity key", name);
}

void sandbox_id_make(char out[SANDBOX_ID_SIZE], const char *cell, const char *random)
{
	snprintf(out, SANDBOX_ID_SIZE, "sb_%.*s_%.*s", SANDBOX_CELL_MAX, cell, ID_RANDOM_CHARS,
		 random);
}

bool sandbox_holds_name(const struct sandbox *sb)
{
	return sb->state != SANDBOX_DELETING && sb->state != SANDBOX_GONE && sb->files_kept;
}

/* To become ready is to be used: what was used last before the start was ready before it. */
const char *sandbox_end_reason(const struct sandbox *sb, uint64_t booted_ms, bool by_memory)
{
	if (by_memory)
		return "it ran out of memory (memory_mb)";
	return sb->last_used_ms < booted_ms ? "its host was restarted" : "its processes ended";
}

int sandbox_failed_error(const struct sandbox *sb, struct err *e)
{
	const char *why = sb->failed_why[0] ? sb->failed_why : "its processes ended";

	if (!sb->files_kept) {
		err_set(e, ERR_CONFLICT, "sandbox %s failed: %.120s; nothing of it was kept",
			sb->id, why);
		return err_fix(e, "Create another one; its name and identity are free.");
	}
	err_set(e, ERR_CONFLICT,
		"sandbox %s failed: %.100s; its files are kept, what ran in it is lost", sb->id,
		why);
	return err_fix(e, "Wake it to go on with its files: 'berth wake %s', or POST .../wake.",
		       sb->id);
}

#include "cli/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/str.h"

#define NAME_SIZE 32

const char *const limit_names[] = {
	"memory_mb",
	"cpu_milli",
	"pids",
	"disk_mb",
	"open_files",
	"cpu_ms",
	"wall_ms",
	"grace_ms",
	"connections",
	"requests",
	"bytes_out",
	"artifact_mb",
	NULL
};

static int check_name(const char *name, struct err *e)
{
	cleanup(buf_done) struct buf names = buf_make(256);

	for (size_t i = 0; limit_names[i]; i++) {
		if (strcmp(name, limit_names[i]) == 0)
			return 0;
		buf_addf(&names, "%s%s", i ? ", " : "", limit_names[i]);
	}
	err_set(e, ERR_INVALID, "there is no limit %s", name);
	return err_fix(e, "The limits: %s.", buf_str(&names));
}

int limits_body(struct buf *out, const struct strv *args, size_t from, struct err *e)
{
	for (size_t i = from; i < args->len; i++) {
		const char *equals = strchr(args->items[i], '=');
		char name[NAME_SIZE];
		uint64_t n = 0;

		if (!equals || !str_copy_bytes(name, sizeof(name), args->items[i],
					       (size_t)(equals - args->items[i])))
			return err_set(e, ERR_INVALID, "a limit is NAME=NUMBER, not \"%.60s\"",
				       args->items[i]);
		if (strcmp(name, "profile") == 0) {
			json_str(out, name, equals + 1);
			continue;
		}
		if (check_name(name, e) < 0)
			return -1;
		if (str_u64(equals + 1, &n, e) < 0 || n > INT64_MAX)
			return err_set(e, ERR_INVALID, "%s is a number, not \"%.40s\"", name,
				       equals + 1);
		json_int(out, name, (int64_t)n);
	}
	return 0;
}

const char *limit_text(const struct json *of, const char *name, char out[LIMIT_TEXT_SIZE])
{
	int64_t n = json_get_int(of, name);

	snprintf(out, LIMIT_TEXT_SIZE, n ? "%" PRId64 : "none", n);
	return out;
}

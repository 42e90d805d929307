/* Limits as columns, for this room only: they go in as one list, and come out one by one. */
#pragma once

#include "core/limits.h"
#include "store/row.h"

#define LIMITS_TEXT_SIZE (LIMIT_COUNT * 21 + 2)

/* clang-format off */
#define LIMIT_COLUMNS \
	"memory_mb, cpu_milli, pids, disk_mb, open_files, cpu_ms, wall_ms, grace_ms, " \
	"connections, requests, bytes_out, artifact_mb"
#define LIMIT_NUMBER_(list, n) "(" list "::bigint[])[" n "]"
#define LIMIT_VALUES(list) \
	LIMIT_NUMBER_(list, "1") ", " LIMIT_NUMBER_(list, "2") ", " LIMIT_NUMBER_(list, "3") ", " \
	LIMIT_NUMBER_(list, "4") ", " LIMIT_NUMBER_(list, "5") ", " LIMIT_NUMBER_(list, "6") ", " \
	LIMIT_NUMBER_(list, "7") ", " LIMIT_NUMBER_(list, "8") ", " LIMIT_NUMBER_(list, "9") ", " \
	LIMIT_NUMBER_(list, "10") ", " LIMIT_NUMBER_(list, "11") ", " LIMIT_NUMBER_(list, "12")
#define LIMIT_NOTHING "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0"

#define LIMIT_COLUMN_(name, record, limit) \
	{ name, COLUMN_INT, offsetof(struct record, limits.of[limit]), sizeof(int64_t), NULL }
#define LIMIT_COLUMN_ROWS(record) \
	LIMIT_COLUMN_("memory_mb", record, LIMIT_MEMORY_MB), \
	LIMIT_COLUMN_("cpu_milli", record, LIMIT_CPU_MILLI), \
	LIMIT_COLUMN_("pids", record, LIMIT_PIDS), \
	LIMIT_COLUMN_("disk_mb", record, LIMIT_DISK_MB), \
	LIMIT_COLUMN_("open_files", record, LIMIT_OPEN_FILES), \
	LIMIT_COLUMN_("cpu_ms", record, LIMIT_CPU_MS), \
	LIMIT_COLUMN_("wall_ms", record, LIMIT_WALL_MS), \
	LIMIT_COLUMN_("grace_ms", record, LIMIT_GRACE_MS), \
	LIMIT_COLUMN_("connections", record, LIMIT_CONNECTIONS), \
	LIMIT_COLUMN_("requests", record, LIMIT_REQUESTS), \
	LIMIT_COLUMN_("bytes_out", record, LIMIT_BYTES_OUT), \
	LIMIT_COLUMN_("artifact_mb", record, LIMIT_ARTIFACT_MB)
/* clang-format on */

/* "{512,1000,...}" */
const char *limits_text(const struct limits *l, char out[LIMITS_TEXT_SIZE]);

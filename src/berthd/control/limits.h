/*
 * Limits in requests and answers, and a change of those of a sandbox that runs:
 * written, then done by berth-node, then written that it is done. A berthd that
 * dies in between leaves it pending, and the next look does it.
 */
#pragma once

#include "berthd/control/transition.h"
#include "lib/json.h"

/* clang-format off */
/* NOLINTBEGIN(bugprone-macro-parentheses): `member` names a place, and is no value */
#define LIMITS_FIELD_(name, record, member, limit) \
	{ name, JSON_INT, offsetof(struct record, member.of[limit]), sizeof(int64_t), false }
/* NOLINTEND(bugprone-macro-parentheses) */
#define LIMITS_FIELDS(record, member) \
	LIMITS_FIELD_("memory_mb", record, member, LIMIT_MEMORY_MB), \
	LIMITS_FIELD_("cpu_milli", record, member, LIMIT_CPU_MILLI), \
	LIMITS_FIELD_("pids", record, member, LIMIT_PIDS), \
	LIMITS_FIELD_("disk_mb", record, member, LIMIT_DISK_MB), \
	LIMITS_FIELD_("open_files", record, member, LIMIT_OPEN_FILES), \
	LIMITS_FIELD_("cpu_ms", record, member, LIMIT_CPU_MS), \
	LIMITS_FIELD_("wall_ms", record, member, LIMIT_WALL_MS), \
	LIMITS_FIELD_("grace_ms", record, member, LIMIT_GRACE_MS), \
	LIMITS_FIELD_("connections", record, member, LIMIT_CONNECTIONS), \
	LIMITS_FIELD_("requests", record, member, LIMIT_REQUESTS), \
	LIMITS_FIELD_("bytes_out", record, member, LIMIT_BYTES_OUT), \
	LIMITS_FIELD_("artifact_mb", record, member, LIMIT_ARTIFACT_MB)
/* clang-format on */

struct node_limits limits_of_node(const struct limits *l); /* as berth-node takes them */
void limits_json(struct buf *out, const struct limits *l); /* as members of an open object */

/*
 * Have berth-node do what the record says, write that it did, and tell berth-egress. `done` is
 * called once, from the loop; ERR_BUSY means that berthd does not know the outcome, and it
 * stays pending.
 */
typedef void limits_fn(void *data, const struct sandbox *sb, const struct err *why);
void limits_enforce(struct reactor *r, const char *request, const struct sandbox *sb,
		    limits_fn *done, void *data);

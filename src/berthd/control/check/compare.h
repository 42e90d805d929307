/*
 * What a record says and what the host holds, side by side: the difference, if
 * there is one, as a sentence an operator can act on. Nothing here acts, and
 * nothing here asks a guest. Unknown is told as unknown.
 */
#pragma once

#include "lib/buf.h"
#include "proto/node.h"
#include "store/check.h"
#include "store/sandbox.h"

#define CHECK_INVARIANTS 12 /* requirements 5.4; numbered from 1 */

enum check_kind {
	CHECK_NONE,
	CHECK_NOT_RUNNING,
	CHECK_NOT_ANSWERING,
	CHECK_NO_DISK,
	CHECK_NO_LINK,
	CHECK_STILL_RUNNING,
	CHECK_DELETING,
	CHECK_QUARANTINED,
	CHECK_GHOST,
	CHECK_ORPHAN,
	CHECK_STRAY,
	CHECK_GENERATION,
	CHECK_UNKNOWN,
	CHECK_OVERDUE,
	CHECK_NO_DEADLINE,
	CHECK_UNPROVEN,
	CHECK_TWICE,
	CHECK_FORGOTTEN,
	CHECK_NO_IMAGE,
	CHECK_UNNAMED_IMAGE,
	CHECK_UNLEASED,
	CHECK_KIND_COUNT
};

/* What `--repair` does about it; only ever what the records intend already. */
enum check_repair {
	REPAIR_NOTHING,
	REPAIR_LOOK,   /* compare again, as after a restart: that settles it */
	REPAIR_DELETE, /* the next attempt of the deletion, now */
	REPAIR_FORGET, /* remove files that no name refers to */
	REPAIR_COUNT
};

struct check_finding {
	enum check_kind kind;
	char what[NODE_DIGEST_SIZE]; /* a sandbox's id, an image's digest, a host */
	uint64_t version;            /* of the record; 0: there is none */
	uint64_t generation;         /* that is here without a record; 0: none */
	char record[200];
	char fact[200];
};

struct check_kind_row {
	const char *name;
	unsigned invariant;
	enum check_repair repair;
	const char *sentence; /* "WHAT " and this */
};
const struct check_kind_row *check_kind_row(enum check_kind kind);
const char *check_invariant_name(unsigned number);
const char *check_invariant_unchecked(unsigned number); /* why nothing looks at it; NULL: it is */

/*
 * A row of this host beside what was seen of its generation (NULL: nothing is
 * there). CHECK_NONE if they agree.
 */
enum check_kind check_row_and_fact(const struct sandbox *sb, const struct node_observation *o);

/* What is there of a sandbox whose row is not this host's: gone, elsewhere, or never heard of. */
enum check_kind check_fact_alone(const struct sandbox *known, const char *host);

/* By the name store_check() gives. */
enum check_kind check_kind_by_name(const char *name);

void check_fact_text(const struct node_observation *o, char *out, size_t size);
void check_record_text(const struct sandbox *sb, char *out, size_t size);
void check_finding_json(struct buf *out, const struct check_finding *f);

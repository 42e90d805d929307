#include "berthd/control/check/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/json.h"
#include "lib/time.h"

/* clang-format off */
static const struct check_kind_row kinds[CHECK_KIND_COUNT] = {
	[CHECK_NONE]		= { "none", 0, REPAIR_NOTHING, "is as it should be." },
	[CHECK_NOT_RUNNING]	= { "not_running", 2, REPAIR_LOOK,
		"should be running, and no process of it is there. Its next use, or the next "
		"look, makes the record failed; the files are kept until it is deleted." },
	[CHECK_NOT_ANSWERING]	= { "not_answering", 2, REPAIR_LOOK,
		"should be running, and its processes are there, but its init has not answered. "
		"Delete it if it stays so." },
	[CHECK_NO_DISK]		= { "no_disk", 2, REPAIR_NOTHING,
		"has a record and no disk. Whatever was in it is lost: delete it." },
	[CHECK_NO_LINK]		= { "no_link", 2, REPAIR_NOTHING,
		"runs, and its link to the network is gone: it reaches nothing. Put it to sleep "
		"and wake it, or delete it." },
	[CHECK_STILL_RUNNING]	= { "still_running", 2, REPAIR_LOOK,
		"should have no processes, and has some. The next look stops them." },
	[CHECK_DELETING]	= { "deleting", 3, REPAIR_DELETE,
		"is being deleted and is not proven gone yet. It is tried again by itself, at the "
		"time the record names." },
	[CHECK_QUARANTINED]	= { "quarantined", 3, REPAIR_DELETE,
		"could not be deleted in six attempts and is only looked at now. Remove what holds "
		"it and delete it again." },
	[CHECK_GHOST]		= { "ghost", 3, REPAIR_LOOK,
		"was deleted, with a receipt, and parts of it are here. The next look destroys "
		"them." },
	[CHECK_ORPHAN]		= { "orphan", 2, REPAIR_NOTHING,
		"is on this host and no record names it. It is left alone: it may belong to "
		"another database, or this one may be older than it. If it is not wanted, berth "
		"check --abandon removes it." },
	[CHECK_STRAY]		= { "stray", 2, REPAIR_NOTHING,
		"is on this host, and its record names another. It is left alone until the record "
		"is deleted." },
	[CHECK_GENERATION]	= { "generation", 5, REPAIR_NOTHING,
		"is here in a generation that its record does not name. It is left alone: the "
		"database may be older than the host." },
	[CHECK_UNKNOWN]		= { "unknown", 2, REPAIR_NOTHING,
		"cannot be seen whole: what could not be read is unknown, not absent. Look at the "
		"record that is told with it, or at the log of berth-node." },
	[CHECK_OVERDUE]		= { "overdue", 4, REPAIR_LOOK,
		"waits for something whose time is long over. Is a berthd running on its host?" },
	[CHECK_NO_DEADLINE]	= { "no_deadline", 4, REPAIR_NOTHING,
		"waits for something and has no deadline. This is a bug: please report it." },
	[CHECK_UNPROVEN]	= { "unproven", 3, REPAIR_NOTHING,
		"was erased by a receipt that does not prove it gone. This is a bug: please report "
		"it." },
	[CHECK_TWICE]		= { "twice", 3, REPAIR_NOTHING,
		"has a row and a tombstone at once. This is a bug: please report it." },
	[CHECK_FORGOTTEN]	= { "forgotten", 3, REPAIR_NOTHING,
		"was there once, and neither its row nor a tombstone is left." },
	[CHECK_NO_IMAGE]	= { "no_image", 2, REPAIR_NOTHING,
		"has a name and is not on this host. Pull or import it again before it is used "
		"here." },
	[CHECK_UNNAMED_IMAGE]	= { "unnamed_image", 2, REPAIR_FORGET,
		"is an image on this host that no name and no sandbox refers to: an import or a "
		"removal was cut short. Do that again, or use --repair." },
	[CHECK_UNLEASED]	= { "unleased", 1, REPAIR_NOTHING,
		"runs a wrapper that no lease names: an exec was given such an id, or the "
		"database is older than it. Stop the wrapper of that name, and all of them are "
		"ended." },
};

static const char *const repairs[REPAIR_COUNT] = {
	[REPAIR_NOTHING]	= "",
	[REPAIR_LOOK]		= "look",
	[REPAIR_DELETE]		= "delete",
	[REPAIR_FORGET]		= "forget",
};

/* One without a kind that is of it says why it is not checked. */
static const struct {
	const char *name;
	const char *unchecked;
} invariants[CHECK_INVARIANTS + 1] = {
	[1]  = { "at most one wrapper of an agent session is alive, and a lease names it", NULL },
	[2]  = { "one live allocation per sandbox, and everything here has a record", NULL },
	[3]  = { "no row is erased before it is proven gone; a tombstone is left", NULL },
	[4]  = { "whatever waits has a deadline and is looked at when it passes", NULL },
	[5]  = { "generations only grow, and no two share one", NULL },
	[6]  = { "the reservations are the sum of the live allocations",
		 "they have no record of their own: the rows are summed when it is asked for" },
	[7]  = { "each turn ends at most once", "there are no turns yet" },
	[8]  = { "a turn that showed progress is never run twice", "there are no turns yet" },
	[9]  = { "every preview has a row, a token and a live allocation",
		 "there are no previews yet" },
	[10] = { "what is in sync is equal on both sides", "there is no sync yet" },
	[11] = { "nothing a guest says changes 1, 2 or 6: all was seen by the host",
		 "it is about how facts are made: tests try it, no record shows it" },
	[12] = { "a key is nowhere but in its owner's hands: the records hold hashes",
		 "the records have no column for more than a hash" },
};
/* clang-format on */

const struct check_kind_row *check_kind_row(enum check_kind kind)
{
	return &kinds[kind];
}

const char *check_invariant_name(unsigned number)
{
	return invariants[number].name;
}

const char *check_invariant_unchecked(unsigned number)
{
	return invariants[number].unchecked;
}

enum check_kind check_kind_by_name(const char *name)
{
	for (int i = 0; i < CHECK_KIND_COUNT; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return (enum check_kind)i;
	return CHECK_UNKNOWN;
}

static bool any(const struct node_observation *o, enum presence p)
{
	return o->process == p || o->cgroup == p || o->disk == p || o->runtime == p ||
	       o->link == p;
}

static enum check_kind check_ready(const struct node_observation *o)
{
	if (o->process == PRESENCE_ABSENT)
		return CHECK_NOT_RUNNING;
	if (o->disk == PRESENCE_ABSENT)
		return CHECK_NO_DISK;
	if (any(o, PRESENCE_UNKNOWN))
		return CHECK_UNKNOWN;
	if (o->link == PRESENCE_ABSENT)
		return CHECK_NO_LINK;
	return o->ready ? CHECK_NONE : CHECK_NOT_ANSWERING;
}

/* Its files may be there, or not yet, or not any more; processes may not. */
static enum check_kind check_failed(const struct node_observation *o)
{
	if (o->process == PRESENCE_PRESENT)
		return CHECK_STILL_RUNNING;
	return any(o, PRESENCE_UNKNOWN) ? CHECK_UNKNOWN : CHECK_NONE;
}

/* No processes, and all of its disk. */
static enum check_kind check_asleep(const struct node_observation *o)
{
	if (o->disk == PRESENCE_ABSENT)
		return CHECK_NO_DISK;
	return check_failed(o);
}

enum check_kind check_row_and_fact(const struct sandbox *sb, const struct node_observation *o)
{
	static const struct node_observation nothing = {
		.presence = PRESENCE_ABSENT,
		.process = PRESENCE_ABSENT,
		.cgroup = PRESENCE_ABSENT,
		.disk = PRESENCE_ABSENT,
		.runtime = PRESENCE_ABSENT,
		.link = PRESENCE_ABSENT,
		.record = PRESENCE_ABSENT,
	};

	o = o ? o : &nothing;
	switch (sb->state) {
	case SANDBOX_READY:
		return check_ready(o);
	case SANDBOX_FAILED:
		return check_failed(o);
	case SANDBOX_DELETING:
		return sb->stop.state == STOP_QUARANTINED ? CHECK_QUARANTINED : CHECK_DELETING;
	case SANDBOX_ASLEEP:
		return check_asleep(o);
	case SANDBOX_CREATING: /* anything may be there; that it ends is the deadline's matter */
	case SANDBOX_FALLING_ASLEEP:
	case SANDBOX_WAKING:
	case SANDBOX_GONE:
	default:
		return CHECK_NONE;
	}
}

enum check_kind check_fact_alone(const struct sandbox *known, const char *host)
{
	if (!known)
		return CHECK_ORPHAN;
	if (known->state == SANDBOX_GONE)
		return CHECK_GHOST;
	return strcmp(known->host, host) == 0 ? CHECK_GENERATION : CHECK_STRAY;
}

void check_fact_text(const struct node_observation *o, char *out, size_t size)
{
	if (!o) {
		snprintf(out, size, "nothing of it is here");
		return;
	}
	snprintf(out, size,
		 "generation %" PRIu64 ": process %s, cgroup %s, disk %s, engine's record %s, "
		 "link %s, berth-node's record %s (%.60s)",
		 o->generation, presence_name(o->process), presence_name(o->cgroup),
		 presence_name(o->disk), presence_name(o->runtime), presence_name(o->link),
		 presence_name(o->record),
		 o->detail);
}

void check_record_text(const struct sandbox *sb, char *out, size_t size)
{
	char when[TIME_TEXT_SIZE] = "";
	int n;

	if (!sb) {
		snprintf(out, size, "none");
		return;
	}
	n = snprintf(out, size, "%s, generation %" PRIu64 " on %s", sandbox_state_name(sb->state),
		     sb->generation, sb->host);
	if (sb->state != SANDBOX_DELETING || n < 0 || (size_t)n >= size)
		return;
	time_text(stop_deadline_ms(&sb->stop), when);
	snprintf(out + n, size - (size_t)n, "; attempt %u, next at %s", sb->stop.attempts, when);
}

void check_finding_json(struct buf *out, const struct check_finding *f)
{
	const struct check_kind_row *row = &kinds[f->kind];
	char sentence[400];

	snprintf(sentence, sizeof(sentence), "%s %s", f->what, row->sentence);
	json_open(out, '{');
	json_str(out, "what", f->what);
	json_str(out, "kind", row->name);
	json_int(out, "invariant", row->invariant);
	json_str(out, "record", f->record);
	json_str(out, "fact", f->fact);
	json_str(out, "sentence", sentence);
	json_str(out, "repair", repairs[row->repair]);
	buf_adds(out, "}");
}

/*
 * What is there of a wrapper, seen from outside it.
 *
 * A sandbox that has no processes has no wrapper: berth-node says so, and nothing is
 * woken for that. In one that runs, the execs that carry the wrapper's name count. One
 * that has a cgroup of its own is there as long as a process is in that, whatever its
 * init says: the evidence is the host's. Of any other (gVisor, or one that was not
 * begun as a wrapper) the journal tells, which is init's word: one that runs is
 * present; one that was seen ended, all of it, is absent; one that was lost while it
 * ran is unknown until its sandbox's processes end.
 */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/berthd.h"
#include "core/wrapper.h"

/* The cgroups of the wrappers of a sandbox, as berth-node saw them. */
enum look_host {
	LOOK_BLIND,  /* the host does not see this guest's processes */
	LOOK_FAILED, /* it could not look: nothing is known */
	LOOK_SEEN,
};

struct look_groups {
	enum look_host host;
	struct strv full, empty; /* with processes in them, and without */
};

void look_groups_done(struct look_groups *g);

enum look_evidence {
	EVIDENCE_INIT,
	EVIDENCE_HOST,
};

struct look {
	struct wrapper_observation seen;
	enum look_evidence evidence; /* on whose word */
	struct strv running;         /* the execs that are present, by their journals */
	struct strv groups;          /* and by their cgroups */
	struct strv all;             /* every one of that name there ever was */
	enum journal_work work;      /* of the lease's own instance, with: */
	uint64_t silent_ms;
};

void look_done(struct look *l);

/* On a worker: by its cgroups, and the journals of a sandbox that is ready, as it was just read. */
void look_at_execs(struct berthd *b, const struct sandbox *sb, const char *name,
		   const struct look_groups *groups, struct look *ret);

/* On a worker, then: what its journal has of the work of this exec. */
void look_at_work(struct berthd *b, const char *sandbox, const char *exec, struct look *ret);

/* On a worker: it took work, or its work has ended. */
void look_note_work(struct berthd *b, const char *sandbox, const char *exec,
		    enum journal_work work);

/* Of any other: by what berth-node saw of it. */
void look_at_sandbox(const struct node_observation *o, struct look *ret);

const char *look_evidence_name(enum look_evidence e);
const char *wrapper_seen_name(enum wrapper_seen s);

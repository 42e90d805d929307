/*
 * What is there of a wrapper, seen from outside it.
 *
 * A sandbox that has no processes has no wrapper: berth-node says so, and nothing is
 * woken for that. In one that runs, the execs that carry the wrapper's name count, by
 * their journals: one that runs is present; one that was seen ended, all of it, is
 * absent; one that was lost while it ran is unknown until its sandbox's processes end.
 */
#pragma once

#include "berthd/runtime/berthd.h"
#include "core/wrapper.h"

struct look {
	struct wrapper_observation seen;
	struct strv running; /* the execs that are present */
};

void look_done(struct look *l);

/* On a worker: by the journals of a sandbox that is ready, as it was just read. */
void look_at_execs(struct berthd *b, const struct sandbox *sb, const char *name,
		   struct look *ret);

/* Of any other: by what berth-node saw of it. */
void look_at_sandbox(const struct node_observation *o, struct look *ret);

/* On a worker: the execs of all wrappers that a sandbox ever had. */
void look_for_execs(struct berthd *b, const char *sandbox, struct strv *ret);

/* On a worker: of these it was seen that nothing is left, with their sandbox's processes. */
void look_none_left(struct berthd *b, const char *sandbox, const struct strv *execs);

const char *wrapper_seen_name(enum wrapper_seen s);

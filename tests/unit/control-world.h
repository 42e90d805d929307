/*
 * What the tests of control's sequences share: a berthd with its own loop, its store workers on
 * the real PostgreSQL of tests/tools/with-postgres, and a berth-node that the test plays itself at
 * the other end of the socket. No root, no engine, no disk image.
 */
#pragma once

#include "berthd/control/transition.h"
#include "berthd/runtime/berthd.h"
#include "store-world.h"

#define HOST "h1" /* this berthd's; the host of add() too */

struct control_world {
	struct world db;
	struct berthd *b;
	struct reactor *r;
	char dir[64];
	int listener, node; /* berth-node's ends */
	uint32_t deadlines[NODE_VERB_COUNT];
};

struct control_world *control_world_make(void);
void control_world_done(struct control_world **at);

/* ---- berth-node ---- */

/* One thing it was asked for. */
struct asked {
	enum node_verb verb;
	uint64_t id;
	union node_any record;
};

/* The next thing it is asked for, which must be this. */
struct asked node_expect(struct control_world *w, enum node_verb verb);
void node_answer(struct control_world *w, const struct asked *a, const void *record);
void node_refuse(struct control_world *w, const struct asked *a, enum err_code code);
void node_hang_up(struct control_world *w); /* and comes back at once */

/* Expect, and answer that it is done. */
struct asked node_does(struct control_world *w, enum node_verb verb);

/* Whatever is on its way has come, and berth-node was asked for nothing. */
void node_is_left_alone(struct control_world *w);

/* ---- what came of it ---- */

struct outcome {
	int times; /* must be 1 in the end */
	bool failed;
	struct err why;
	struct sandbox sb;
	struct tombstone tomb;
};

/* A transition of our own whose end is `o`: hand on_outcome() over as its `done`. */
struct transition *transition_for(struct control_world *w, const char *id, struct outcome *o);
void on_outcome(struct transition *c, const struct err *why);
void wait_outcome(struct control_world *w, struct outcome *o);

/* The record as the database has it. */
struct sandbox record_of(struct control_world *w, const char *id);

/* The events of its log, in order, each with a blank behind it. */
const char *history_of(struct control_world *w, const char *id);

/* From now on the database refuses to write this state of a sandbox, with this SQLSTATE. */
void refuse_state(struct control_world *w, const char *state, const char *sqlstate);

/*
 * ---- how a build fails ----
 *
 * Of ID("1"), which a create or a wake has begun: NODE_CREATE is asked for next.
 */

/* This step is refused: the record says so before `undo` is asked for, and the end comes then. */
void check_step_refused(struct control_world *w, struct outcome *o, enum node_verb step,
			enum node_verb undo);

/* Its start is not answered in time: the record stays so, also when the answer comes late. */
void check_start_unanswered(struct control_world *w, struct outcome *o, enum sandbox_state state);

/* Its deletion is written while it starts: nothing more is asked for, and the record stays so. */
void check_start_deleted(struct control_world *w, struct outcome *o, enum sandbox_state state);

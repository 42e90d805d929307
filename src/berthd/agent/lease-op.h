/*
 * A wrapper being tended: its lease is read, the wrapper looked at, core/lease decides,
 * the lease is written, and only then something is done. What was seen afterwards is
 * written again. Who was faster with a write is obeyed: it is read and decided anew.
 */
#pragma once

#include "berthd/agent/name-lock.h"
#include "berthd/agent/observe.h"
#include "berthd/runtime/reactor.h"
#include "store/sandbox.h"
#include "store/wrapper.h"

struct lease_operation;
typedef void lease_op_fn(struct lease_operation *t, const struct err *why);

/*
 * By what was read and seen: apply events to t->w.lease. 1: write it, then do t->action.
 * 0: there is nothing to write. -1: refused.
 */
typedef int lease_op_decide_fn(struct lease_operation *t, const struct moment *now, struct err *e);

struct lease_operation {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	bool all;  /* anybody's sandbox */
	bool open; /* make the record if there is none */
	struct turn turn;
	bool in_turn;
	struct job job;
	struct sandbox sb;
	struct wrapper w;    /* as it was read, then as it is decided */
	struct lease before; /* as it was read */
	uint64_t read_mono_ms;
	struct look_groups groups;
	struct look look;
	enum lease_action action;
	const char *event;      /* for the log */
	enum journal_work work; /* to be noted before the lease is written */
	uint64_t attempt;       /* to stop it, that this carries out */
	bool rebooted;          /* what is written: the host was started again, and it is gone */
	unsigned tries;
	size_t ending;                     /* execs whose end is waited for */
	size_t killed;                     /* of look.groups */
	lease_op_decide_fn *decide, *then; /* now; and when that is done */
	void (*spawn)(struct lease_operation *t);
	bool failed; /* the answer is `why`, whatever else is still done */
	struct err why;
	lease_op_fn *done; /* the caller's; then it is the caller's to free */
	void *data;
};

/* This host as it runs now. */
struct wrapper_boot lease_op_boot(const struct berthd *b);

/* `owner` NULL: anybody's. */
struct lease_operation *lease_op_new(struct reactor *r, const char *request, const char *owner);
void lease_op_name(struct lease_operation *t, const char *sandbox, const char *name);
void lease_op_free(struct lease_operation *t);

/* When its turn has come. */
void lease_op_begin(struct lease_operation *t, lease_op_decide_fn *decide, lease_op_fn *done);

/* Only if no other lease operation is at it. */
must_check bool lease_op_try(struct lease_operation *t, lease_op_decide_fn *decide,
			     lease_op_fn *done);

/* Beside a lease operation that is at it: decides by the record alone, and acts on nothing. */
void lease_op_beside(struct lease_operation *t, lease_op_decide_fn *decide, lease_op_fn *done);

/* From `spawn`: read, look and decide anew. */
void lease_op_again(struct lease_operation *t, lease_op_decide_fn *decide);

/* ---- for those who decide ---- */

must_check int lease_op_apply(struct lease_operation *t, const struct lease_input *in,
			      const struct moment *now,
			      struct err *e);

/* Ask for its end, and begin the first attempt in the same breath. */
must_check int lease_op_stop(struct lease_operation *t, enum lease_reason reason,
			     const struct moment *now,
			     struct err *e);

/* Begin the attempt, or the look, that is due. */
must_check int lease_op_attempt(struct lease_operation *t, enum lease_event ev,
				const struct moment *now,
				struct err *e);

int lease_op_only_look(struct lease_operation *t, const struct moment *now, struct err *e);

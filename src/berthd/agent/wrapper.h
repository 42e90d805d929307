/*
 * Wrappers, for any protocol: an agent's own process tree in a sandbox, at most one of a
 * name alive, under a durable lease. core/lease says what a lease means; lease-op.h carries
 * it out.
 */
#pragma once

#include "berthd/agent/observe.h"
#include "berthd/runtime/caller.h"
#include "proto/exec.h"
#include "store/wrapper.h"

/* Which one. What is pointed at is copied. */
struct wrapper_ask {
	struct caller by;
	const char *sandbox;
	const char *name;
	char instance[LEASE_INSTANCE_SIZE]; /* only while its lease is of this one; "": of any */
};

/* The lease as it is now, and what was seen of the wrapper; both until the callback returns. */
struct wrapper_answer {
	const struct wrapper *w;
	const struct look *look;
	bool fresh;        /* of a launch: this is a new instance */
	bool stopping;     /* it is to end, and was not seen gone yet */
	uint64_t retry_ms; /* of a launch: another may be alive until then, or NEVER; 0: no other */
};

/* `why`: it was refused, and the answer is as far as it was read. */
typedef void wrapper_answer_fn(void *data, const struct wrapper_answer *a, const struct err *why);

struct wrapper_launch {
	struct exec_request ask;      /* taken over, also in failure; its flags are set here */
	char what[WRAPPER_WHAT_SIZE]; /* a hash: one that was started with another is refused */
};

/*
 * Each calls `done` once, from the loop, never from within.
 *
 * A launch: the wrapper of this name, started or found. While anything else may be alive
 * under the name, nothing is started.
 */
must_check int wrapper_launch(const struct wrapper_ask *a, struct wrapper_launch *l,
			      wrapper_answer_fn *done, void *data, struct err *e);

/* Beside an operation that is under way. */
void wrapper_get(const struct wrapper_ask *a, wrapper_answer_fn *done, void *data);

/* What its own program says of its work. One whose work failed is stopped. */
void wrapper_ready(const struct wrapper_ask *a, wrapper_answer_fn *done, void *data);
void wrapper_accepted(const struct wrapper_ask *a, wrapper_answer_fn *done, void *data);
void wrapper_settled(const struct wrapper_ask *a, bool ok, wrapper_answer_fn *done, void *data);

void wrapper_stop(const struct wrapper_ask *a, enum lease_reason reason, wrapper_answer_fn *done,
		  void *data);

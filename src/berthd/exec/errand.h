/*
 * Something to be done to an exec that runs, maybe on another loop: a signal, or
 * bytes for its standard input. It is done when init has said so.
 */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/worker.h"

struct exec;
struct errand;

typedef void (*errand_fn)(struct errand *e, const struct err *why);

struct errand {
	struct job job;
	struct reactor *from;
	struct journal *journal; /* held by the sender, until it is done */
	uint32_t signum;         /* 0: standard input */
	struct buf input;
	bool input_end;
	errand_fn done; /* on the loop it came from, exactly once. NULL: no caller waits */
	void *data;
	bool failed;
	struct err e;
	struct errand *next; /* in the exec's queue */
};

/* The memory is the caller's, and must last until done(). */
void errand_send(struct errand *e);

/*
 * Why nothing can be done to an exec that no loop of berthd has. ERR_CONFLICT: it has ended.
 * ERR_BUSY: it runs, and this berthd has not taken it up again since its start.
 */
void errand_absent(struct journal *j, struct err *ret);
void errand_ended(const struct journal *j, struct err *ret);

/* For the exec: it has been done, or will never be. */
void errand_back(struct errand *e, const struct err *why);

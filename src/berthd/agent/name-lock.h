/*
 * One at a time: a lease operation has the name of its wrapper to itself, on whatever loop, until
 * it gives the turn to the next. So no other one observes between a launch's record
 * and its exec.
 */
#pragma once

#include <pthread.h>

#include "berthd/runtime/worker.h"
#include "core/sandbox.h"
#include "core/wrapper.h"

#define TURN_KEY_SIZE (SANDBOX_ID_SIZE + WRAPPER_NAME_SIZE)

struct turn {
	char key[TURN_KEY_SIZE];
	struct reactor *reactor;
	void (*come)(struct turn *t); /* on its reactor: it is ours */
	struct job job;
	struct turn *next;
};

struct name_locks {
	pthread_mutex_t lock;
	struct turn *first, **last; /* in the order they came; the first of a key has it */
};

void name_locks_init(struct name_locks *ts);
void name_locks_done(struct name_locks *ts);

/* `t->come` is called once, never from within. */
void turn_take(struct name_locks *ts, struct turn *t);

/* False, and nothing was done, if another turn has the key. */
must_check bool turn_try(struct name_locks *ts, struct turn *t);

void turn_give(struct name_locks *ts, struct turn *t);

/* To kill an exec, or to signal it: a signal that is delivered, or an end that has been seen. */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/reactor.h"

struct kill_spec {
	uint32_t signum;   /* to all of it */
	uint64_t grace_ms; /* then KILL; 0: no second signal */
	uint64_t seen_ms;  /* for its end to be seen, after the last; 0: the usual time */
};

/* Its end was seen, or, if the signal need not end it, the signal was delivered; or why not. */
typedef void (*kill_done_fn)(void *data, const struct err *why);

/* `done` is called once, never from within. */
void exec_kill(struct reactor *r, struct journal *j, const struct kill_spec *spec,
	       kill_done_fn done, void *data);

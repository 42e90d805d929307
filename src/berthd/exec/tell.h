/*
 * Something for a running exec, from any loop: standard input, a signal, a size.
 * It is done on the exec's own loop, when init can take it, and told back.
 */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/reactor.h"
#include "proto/frame.h"

struct exec;

/*
 * NULL: on its way to init. ERR_CONFLICT: the exec has ended. ERR_BUSY: it runs, and nothing of
 * this was done: berthd has not reached it since its start, or too much waits for it.
 */
typedef void (*exec_tell_fn)(void *data, const struct err *why);

/*
 * FRAME_STDIN, FRAME_STDIN_END, FRAME_SIGNAL or FRAME_RESIZE, copied. `done` is
 * called once, on `from`, never before this returns. Input waits until the command
 * has read most of what it was given: tell the next piece then.
 */
void exec_tell(struct reactor *from, struct journal *j, enum frame_type type,
	       const struct buf *payload, exec_tell_fn done, void *data);

/* What still waits of all that was told with this `data` is dropped; done() follows for each. */
void exec_tell_drop(struct reactor *from, struct journal *j, void *data);

/* For the exec, on its own loop: there may be room, or it is over. */
void tellings_look(struct exec *x);

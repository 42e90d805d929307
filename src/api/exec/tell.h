/*
 * Something for a running exec, from any loop: standard input, a signal, a size.
 * It is done on the exec's own loop, when init can take it, and told back.
 */
#pragma once

#include "api/exec/journal.h"
#include "api/reactor.h"
#include "proto/frame.h"

/* `delivered`: on its way to init. Otherwise the exec has ended. */
typedef void (*exec_tell_fn)(void *data, bool delivered);

/*
 * FRAME_STDIN, FRAME_STDIN_END, FRAME_SIGNAL or FRAME_RESIZE, copied. `done` is
 * called once, on `from`, never before this returns. Input waits until the command
 * has read most of what it was given: tell the next piece then.
 */
void exec_tell(struct reactor *from, struct journal *j, enum frame_type type,
	       const struct buf *payload, exec_tell_fn done, void *data);

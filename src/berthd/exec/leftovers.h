/*
 * What commands that have ended left running in a sandbox: init is asked to kill it.
 *
 * It works at the sandbox's process limit, too: no process has to be started for it.
 */
#pragma once

#include "berthd/exec/init-link.h"

/* How many there were and are seen gone; or why that is not known. */
typedef void (*leftovers_fn)(void *data, uint64_t killed, const struct err *why);

/* Init has lost sight of what may run: then nothing is known to be gone. Tells what to do. */
must_check bool leftovers_unknown(struct err *why);

/*
 * Of this exec; of all that have ended if it is ""; of none if it is EXEC_ID_NONE, and it is told
 * whether init has lost sight of any. A sandbox that does not run has none.
 * `done` may be called before this returns: make it the last thing you do.
 */
void leftovers_kill(const struct init_dial_ask *way, const char *exec, leftovers_fn done,
		    void *data);

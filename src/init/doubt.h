/*
 * A command that a SIGKILL ended which we did not send: was it the host's kernel, for memory?
 * Only the host can know, and it sees the process as long as we do not wait for it.
 */
#pragma once

#include <sys/types.h>

#include "lib/base.h"

enum doubt_state {
	DOUBT_NEVER, /* the peer does not ask for it, or the host could not see it */
	DOUBT_NONE,
	DOUBT_UNSAID,
	DOUBT_SAID,
	DOUBT_OVER,
};

struct doubt {
	enum doubt_state state;
	uint64_t ended_us; /* when that was seen; 0: it was not */
	uint64_t until_us; /* so long it is kept; 0: it is not */
};

/* True: this child is not to be waited for now. */
must_check bool doubt_look(struct doubt *d, pid_t pid, uint64_t now_us);

/* False: there was none. */
must_check bool doubt_end(struct doubt *d);

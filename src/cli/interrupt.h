/* Ctrl-C and its kin as something to read, so that no work is cut off in the middle. */
#pragma once

#include "lib/err.h"

struct interrupt {
	int fd;
	unsigned count; /* how many came so far */
	int last;       /* the last one's number */
};

/* From here on SIGINT, SIGTERM and SIGHUP only count; writing to a closed pipe is EPIPE. */
must_check int interrupt_open(struct interrupt *i, struct err *e);
void interrupt_close(struct interrupt *i);

/* Take what came; true if something new did. */
bool interrupt_take(struct interrupt *i);

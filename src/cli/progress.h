/*
 * How far long work is: a bar that redraws itself on a terminal, a plain line
 * per phase otherwise. Always on standard error.
 */
#pragma once

#include "lib/base.h"

struct progress {
	bool terminal;
	bool drawn; /* a bar is on the screen */
	char phase[32];
	uint64_t drawn_ms;
};

struct progress progress_make(void);

/* `total` 0: not known. Cheap to call often. */
void progress_show(struct progress *p, const char *phase, uint64_t done, uint64_t total);
void progress_end(struct progress *p); /* wipes the bar; harmless without one */

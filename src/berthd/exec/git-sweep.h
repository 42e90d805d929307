/* Remove what a checkout that was ended in the middle has left in the sandbox. */
#pragma once

#include "berthd/exec/init-dial.h"

/* `done` is called once, whether it could be removed or not; maybe before this returns. */
void git_sweep(const struct init_dial_ask *way, const char *path, void (*done)(void *data),
	       void *data);

/* The terminal we were started on, lent to a command in a sandbox. */
#pragma once

#include <termios.h>

#include "proto/exec.h"

struct terminal {
	int winch; /* readable when its size has changed; -1: we have none */
	bool raw;
	struct termios before;
};

/* Keys go through as they are, Ctrl-C too, until terminal_close(). */
must_check int terminal_open(struct terminal *t, struct err *e);
void terminal_close(struct terminal *t);

void terminal_size(struct exec_size *ret);
bool terminal_take_winch(struct terminal *t); /* true if the size may have changed */

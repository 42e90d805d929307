/* The signals for an exec that its init has not said yet that it delivered, in their order. */
#pragma once

#include "berthd/exec/exec.h"

void exec_signals_add(struct exec *x, struct mail *m);
/* So many of them were delivered (NULL), or will never be. */
void exec_signals_back(struct exec *x, size_t count, const struct err *why);
void exec_signals_send(struct exec *x);   /* all of them: it has just started */
void exec_signals_unsure(struct exec *x); /* the connection broke */

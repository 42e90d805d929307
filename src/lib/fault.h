/*
 * What the kernel says about a file, as an error with a reason a program can
 * act on: no_such_file, exists, no_space, ...
 */
#pragma once

#include "lib/err.h"

/* -1, like err_set(); the message ends with the kernel's own words. */
int err_file(struct err *e, int errnum, const char *fmt, ...) printf_like(3, 4);

/* The same reason by its name, as it came over a wire. An unknown name is no reason at all. */
void err_file_reason(struct err *e, const char *name);

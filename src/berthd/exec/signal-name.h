/* Signals by name or number, as requests give them. */
#pragma once

#include "lib/err.h"

/* "TERM", "SIGTERM", "15" */
must_check int signal_by_name(const char *name, uint32_t *ret, struct err *e);
